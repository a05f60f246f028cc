"""Price lists, limits, costs, refunds, operators, coarser sums; the functions of money as they are now."""

from importlib.resources import files
from pathlib import Path

from alembic import op

from gateway.db.script import run_script

revision = "20261121230000"
down_revision = "20261121201000"
branch_labels = None
depends_on = None

FUNCTIONS = (
    "types.sql",
    "limits.sql",
    "admit_judged.sql",
    "admit_one.sql",
    "admit.sql",
    "latency.sql",
    "settle_one.sql",
    "settle.sql",
)


def upgrade() -> None:
    """Create the tables, the columns and the functions."""
    connection = op.get_bind()
    run_script(connection, Path(__file__).with_suffix(".sql").read_text("utf-8"))
    for name in FUNCTIONS:
        run_script(connection, (files("gateway.ledger") / "sql" / name).read_text("utf-8"))
