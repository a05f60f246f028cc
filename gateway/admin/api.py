"""`/admin/api`: accounts, keys, usage and books, for whoever has the admin key."""

from collections.abc import Callable
from typing import Any

from litestar import Router
from litestar.di import Provide

from gateway.admin.accounts import AccountsController
from gateway.admin.body import JsonRequest
from gateway.admin.books import BooksController
from gateway.admin.guard import admin_guard
from gateway.admin.keys import KeysController
from gateway.admin.usage import AdminUsageController
from gateway.ledger.accounts import Accounts
from gateway.ledger.books.verify import Books
from gateway.ledger.keys import Keys
from gateway.reports.usage import UsageReport


def admin_router(admin_key: str, *, accounts: Accounts, keys: Keys, usage_report: UsageReport, books: Books) -> Router:
    """Make the routes of the admin API, closed to everyone without the admin key."""
    given = {"accounts": accounts, "keys": keys, "usage_report": usage_report, "books": books}
    return Router(
        path="/admin/api",
        route_handlers=[AccountsController, KeysController, AdminUsageController, BooksController],
        guards=[admin_guard(admin_key)],
        request_class=JsonRequest,
        dependencies={name: Provide(_giving(part), sync_to_thread=False) for name, part in given.items()},
    )


def _giving(part: Any) -> Callable[[], Any]:
    def give() -> Any:
        return part

    return give
