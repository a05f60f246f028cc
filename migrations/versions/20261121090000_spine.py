"""The tables of the spine: accounts, catalog, requests, usage, ledger."""

from pathlib import Path

from alembic import op

from gateway.db.script import run_script

revision = "20261121090000"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create everything."""
    run_script(op.get_bind(), Path(__file__).with_suffix(".sql").read_text("utf-8"))
