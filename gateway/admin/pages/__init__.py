"""The pages of the dashboard: one file or folder each, registered here. gateway/admin/site/README.md says how."""

from collections.abc import Sequence

from litestar.handlers import HTTPRouteHandler

from gateway.admin.pages import (
    accounts,
    audit,
    books,
    keys,
    models,
    overview,
    owner,
    playground,
    queues,
    requests,
    webhooks,
)

PAGES: Sequence[HTTPRouteHandler] = [
    *playground.PAGES,
    *overview.PAGES,
    *owner.PAGES,
    *accounts.PAGES,
    *keys.PAGES,
    *models.PAGES,
    *queues.PAGES,
    *audit.PAGES,
    *books.PAGES,
    *requests.PAGES,
    *webhooks.PAGES,
]
"""Every route of every page; each page's module gives its own as PAGES."""
