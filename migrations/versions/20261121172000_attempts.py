"""The steps of workflows and their costs."""

from pathlib import Path

from alembic import op

from gateway.db.script import run_script

revision = "20261121172000"
down_revision = "20261121171000"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    run_script(op.get_bind(), Path(__file__).with_suffix(".sql").read_text("utf-8"))
