"""Latencies counted in one number, and coarse sums by the day; settlement that counts so."""

from importlib.resources import files
from pathlib import Path

from alembic import op

from gateway.db.script import run_script

revision = "20261122024300"
down_revision = "20261121230000"
branch_labels = None
depends_on = None

FUNCTIONS = ("latency.sql", "settle_one.sql", "settle.sql")


def upgrade() -> None:
    """Create the column, the tables and the functions."""
    connection = op.get_bind()
    read = (files("gateway.ledger") / "sql").joinpath
    run_script(connection, read(FUNCTIONS[0]).read_text("utf-8"))
    run_script(connection, Path(__file__).with_suffix(".sql").read_text("utf-8"))
    for name in FUNCTIONS[1:]:
        run_script(connection, read(name).read_text("utf-8"))
