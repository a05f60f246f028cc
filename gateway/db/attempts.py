"""What was tried and run inside requests: steps of workflows, calls of upstreams, attempts in other pools."""

from sqlalchemy import BigInteger, Boolean, Column, PrimaryKeyConstraint, SmallInteger, Table, Text, Uuid, text

from gateway.contract.units import UNIT_NAMES
from gateway.db.metadata import METADATA, count
from gateway.db.usage import PHASE_COLUMNS

attempt = Table(
    "attempt",
    METADATA,
    Column("request_id", Uuid, nullable=False),
    Column("number", SmallInteger, nullable=False),
    Column("name", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("step_id", Text, nullable=False),
    Column("pool", Text, nullable=False),
    Column("worker", Text, nullable=False),
    Column("attempt", SmallInteger, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("reason", SmallInteger, nullable=False),
    Column("cost_nanos", BigInteger),
    *(count(name) for name in UNIT_NAMES),
    *(count(name) for name in PHASE_COLUMNS),
    Column("upstream", Boolean, nullable=False, server_default=text("false")),
    Column("estimated", Boolean, nullable=False, server_default=text("false")),
    Column("detail", Text, nullable=False, server_default=text("''")),
    Column("gpu_us", BigInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("request_id", "number"),
)
"""Written with the usage row of the whole; a request that was one attempt in a pool of our own has none, since that
stands on its usage row. `cost_nanos` is what an upstream says, or what the units cost at its route's cost or at the
price of a step's own model; null where nobody says: it is recorded and charged to nobody. `detail` is for operators.
Append-only: a trigger refuses update and delete."""
