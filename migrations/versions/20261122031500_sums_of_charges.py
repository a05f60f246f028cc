"""Sums of charges by day, price version and terms, for statements."""

from pathlib import Path

from alembic import op

from gateway.db.script import run_script

revision = "20261122031500"
down_revision = "20261122024600"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    run_script(op.get_bind(), Path(__file__).with_suffix(".sql").read_text("utf-8"))
