"""Media files that callers upload, and for how long an account keeps its media."""

from alembic import op

revision = "20261121170000"
down_revision = "20261121091000"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table, and the column of accounts: null is the setting's default."""
    op.execute("alter table account add column keep_media_s bigint")
    op.execute(
        """
        create table file (
          id uuid primary key,
          account_id bigint not null,
          size_bytes bigint not null,
          created_at timestamptz not null default now(),
          expires_at timestamptz not null,
          duration_ms bigint not null default 0,
          width int not null default 0,
          height int not null default 0,
          frames int not null default 0,
          media_type text not null,
          blob text not null,
          filename text not null,
          purpose text not null
        )
        """
    )
    op.execute("create index file_account_id_id_idx on file (account_id, id)")
    op.execute("create index file_expires_at_idx on file (expires_at)")
