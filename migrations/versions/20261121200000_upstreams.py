"""The upstreams of the catalog: who serves models elsewhere."""

from alembic import op
from sqlalchemy import Column, Text
from sqlalchemy.dialects.postgresql import JSONB

revision = "20261121200000"
down_revision = "20261121190000"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table; the running release does not look at it."""
    op.create_table("upstream", Column("name", Text, primary_key=True), Column("spec", JSONB, nullable=False))
