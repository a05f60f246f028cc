"""An index by which an account's requests for media are listed; those for text are not in it and pay nothing for it."""

from alembic import op

revision = "20261121201000"
down_revision = "20261121200000"
branch_labels = None
depends_on = None

TASKS = "3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16"


def upgrade() -> None:
    """Create the index."""
    op.execute(f"create index usage_account_id_id_media_idx on usage (account_id, id) where task in ({TASKS})")
