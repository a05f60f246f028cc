"""What alembic runs: migrations over the connection that `gateway.db.migrate` hands in."""

from alembic import context

from gateway.db.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    compare_server_default=True,
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
