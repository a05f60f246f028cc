"""An index by which an account's videos are listed; requests of other tasks are not in it and pay nothing for it."""

from alembic import op

revision = "20261121174000"
down_revision = "20261121173000"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index."""
    op.execute("create index usage_account_id_id_video_idx on usage (account_id, id) where task in (10, 11, 12, 13)")
