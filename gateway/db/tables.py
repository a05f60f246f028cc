"""All tables under one MetaData: what alembic compares with a migrated database."""

from gateway.db import (
    accounts,
    attempts,
    catalog,
    files,
    ledger,
    limits,
    money,
    operators,
    requests,
    rollups,
    usage,
    webhooks,
)
from gateway.db.metadata import METADATA

TABLES = (
    accounts.account,
    attempts.attempt,
    catalog.model,
    files.file,
    limits.spending_limit,
    money.refund,
    operators.audit,
    rollups.rollup_day,
    requests.open_request,
    usage.usage,
    ledger.ledger_entry,
    webhooks.webhook_event,
)

__all__ = ["METADATA", "TABLES"]
