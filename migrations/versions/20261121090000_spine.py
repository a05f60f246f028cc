"""The tables and functions of the spine: accounts, catalog, requests, usage, ledger."""

from importlib.resources import files
from pathlib import Path

from alembic import op

from gateway.db.script import run_script

revision = "20261121090000"
down_revision = None
branch_labels = None
depends_on = None

FUNCTIONS = ("types.sql", "admit_one.sql", "admit_judged.sql", "admit.sql", "settle_one.sql", "settle.sql")


def upgrade() -> None:
    """Create everything."""
    connection = op.get_bind()
    run_script(connection, Path(__file__).with_suffix(".sql").read_text("utf-8"))
    for name in FUNCTIONS:
        run_script(connection, (files("gateway.ledger") / "sql" / name).read_text("utf-8"))
