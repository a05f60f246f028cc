"""What outcomes other than success cost, pinned to the price version as its components are."""

from alembic import op

revision = "20261121173000"
down_revision = "20261121172000"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; versions that are there take the policy that their model has now."""
    op.execute("alter table price_version add column outcome jsonb")
    op.execute("alter table price_version disable trigger append_only")
    op.execute("update price_version p set outcome = m.spec -> 'outcome' from model m where m.id = p.model_id")
    op.execute("alter table price_version enable trigger append_only")
