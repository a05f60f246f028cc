"""The outbox of webhooks, and what became of each delivery."""

from pathlib import Path

from alembic import op

from gateway.db.script import run_script

revision = "20261121171000"
down_revision = "20261121170000"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables; the functions that write them come with the next migration."""
    run_script(op.get_bind(), Path(__file__).with_suffix(".sql").read_text("utf-8"))
