"""How Alembic runs the migrations: in the transaction that the caller holds."""

from alembic import context

from roof_collector.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
