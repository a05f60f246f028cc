"""`/admin/api`: accounts, keys, refunds, usage and books, for whoever has a key of an operator."""

from collections.abc import Callable, Mapping
from typing import Any

from litestar import Router
from litestar.di import Provide
from sqlalchemy.ext.asyncio import AsyncEngine

from gateway.admin.api.accounts import AccountsController
from gateway.admin.api.backtests import BacktestsController
from gateway.admin.api.body import JsonRequest
from gateway.admin.api.books import BooksController
from gateway.admin.api.guard import actor_of, admin_guard
from gateway.admin.api.keys import KeysController
from gateway.admin.api.limits import LimitsController
from gateway.admin.api.prices import AccountPricingController, PriceListsController, PricesController
from gateway.admin.api.refunds import RefundsController
from gateway.admin.api.usage import AdminUsageController
from gateway.admin.api.webhooks import AdminWebhooksController
from gateway.ledger.accounts import Accounts
from gateway.ledger.books.runs import BooksRuns
from gateway.ledger.corrections import Corrections
from gateway.ledger.keys import Keys
from gateway.ledger.limits import LimitStore
from gateway.ledger.prices.lists import PriceLists
from gateway.ledger.prices.store import PriceStore
from gateway.ledger.refunds import Refunds
from gateway.queues.revisions import Revisions
from gateway.reports.backtest.jobs import Backtests
from gateway.reports.usage import UsageReport
from gateway.webhooks.deliveries import Deliveries


def admin_router(
    operator_keys: Mapping[str, str],
    *,
    accounts: Accounts,
    keys: Keys,
    usage_report: UsageReport,
    engine: AsyncEngine,
    deliveries: Deliveries,
    revisions: Revisions,
) -> Router:
    """Make the routes of the admin API, closed to everyone without the key of a role."""
    given: dict[str, Any] = {
        "accounts": accounts,
        "keys": keys,
        "limits": LimitStore(engine),
        "refunds": Refunds(engine),
        "usage_report": usage_report,
        "runs": BooksRuns(engine),
        "corrections": Corrections(engine),
        "deliveries": deliveries,
        "prices": PriceStore(engine),
        "price_lists": PriceLists(engine),
        "revisions": revisions,
        "backtests": Backtests(engine),
    }
    return Router(
        path="/admin/api",
        route_handlers=[
            AccountsController,
            KeysController,
            LimitsController,
            AccountPricingController,
            PricesController,
            BacktestsController,
            PriceListsController,
            RefundsController,
            AdminUsageController,
            BooksController,
            AdminWebhooksController,
        ],
        guards=[admin_guard(operator_keys)],
        request_class=JsonRequest,
        dependencies={
            "by": Provide(actor_of, sync_to_thread=False),
            **{name: Provide(_giving(part), sync_to_thread=False) for name, part in given.items()},
        },
    )


def _giving(part: Any) -> Callable[[], Any]:
    def give() -> Any:
        return part

    return give
