"""The pages and reports that bench.pages calls, over short and long ranges."""

from datetime import UTC, datetime

import msgspec


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to look at: the busiest account, key and model, a request, and the secret of that key."""

    account_id: int
    key_id: int
    model: str
    request_id: str
    secret: str


def admin_paths(found: Found) -> list[str]:
    """Name the pages of operators, over short and long ranges."""
    month = datetime.now(UTC).strftime("%Y-%m")
    return [
        "/admin",
        "/admin?range=7d",
        "/admin?range=90d",
        "/admin/models",
        "/admin/models?range=90d",
        f"/admin/models/{found.model}",
        "/admin/accounts",
        f"/admin/accounts/{found.account_id}",
        "/admin/keys",
        f"/admin/keys/{found.key_id}",
        "/admin/requests",
        "/admin/requests?range=90d",
        "/admin/requests?range=90d&outcome=failed",
        f"/admin/requests?range=90d&key={found.key_id}",
        f"/admin/requests?range=90d&account={found.account_id}",
        f"/admin/requests?range=90d&model={found.model}",
        f"/admin/requests/{found.request_id}",
        "/admin/queues",
        "/admin/books",
        "/admin/books/refunds",
        "/admin/webhooks",
        "/admin/audit",
        "/admin/playground",
        f"/admin/accounts/{found.account_id}/statements/{month}",
    ]


def owner_paths() -> list[str]:
    """Name the pages of an API key's owner."""
    month = datetime.now(UTC).strftime("%Y-%m")
    return ["/usage", "/usage?range=90d", "/usage/requests", "/usage/requests?range=90d", "/usage/statements",
            f"/usage/statements/{month}"]  # fmt: skip


def api_paths(found: Found) -> list[str]:
    """Name the reports of the admin API."""
    since = "from=2026-01-01" if datetime.now(UTC).year == 2026 else ""
    return [f"/admin/api/usage?group_by={by}&{since}" for by in ("model", "day", "account", "model,outcome")] + [
        f"/admin/api/usage?group_by=day&key={found.key_id}&{since}"
    ]
