"""The revision of each key, so that gateways read only what has changed."""

from alembic import op

revision = "20261121091000"
down_revision = "20261121090000"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and its index; keys that are there count as changed at revision 0."""
    op.execute("alter table api_key add column revision bigint not null default 0")
    op.execute("create index api_key_revision_idx on api_key (revision)")
