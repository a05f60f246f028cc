"""All tables under one MetaData: what alembic compares with a migrated database."""

from gateway.db import accounts, catalog, ledger, requests, usage
from gateway.db.metadata import METADATA

TABLES = (accounts.account, catalog.model, requests.open_request, usage.usage, ledger.ledger_entry)

__all__ = ["METADATA", "TABLES"]
