"""The ways that a request may go, and what was tried on them."""

from pathlib import Path

from alembic import op

from gateway.db.script import run_script

revision = "20261121190000"
down_revision = "20261121174000"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table and the columns."""
    run_script(op.get_bind(), Path(__file__).with_suffix(".sql").read_text("utf-8"))
