"""Thresholds of a key's budget in all that were told, and the orders that operators gave to pools and workers."""

from alembic import op

revision = "20261122024600"
down_revision = "20261122024300"
branch_labels = None
depends_on = None

STATEMENTS = (
    "alter table api_key add column budget_alerted smallint not null default 0",
    "create index api_key_budget_idx on api_key (id) where budget_nanos is not null",
    """
    create table pool_order (
      pool text not null,
      worker text not null,
      stands boolean not null,
      at timestamptz not null default now(),
      seen_at timestamptz not null default now(),
      actor text not null,
      primary key (pool, worker)
    )
    """,
)


def upgrade() -> None:
    """Create the column, its index, and the table."""
    for statement in STATEMENTS:
        op.execute(statement)
