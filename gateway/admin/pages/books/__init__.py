"""Books: does every cent add up? Reads what settlers have found; verifying, correcting and lists beside it."""

from collections.abc import Sequence

from litestar.handlers import HTTPRouteHandler

from gateway.admin.pages.books.correct import CORRECT_PAGES
from gateway.admin.pages.books.lists import LIST_PAGES
from gateway.admin.pages.books.show import SHOW_PAGES
from gateway.admin.pages.books.verify import VERIFY_PAGES

PAGES: Sequence[HTTPRouteHandler] = [*SHOW_PAGES, *VERIFY_PAGES, *CORRECT_PAGES, *LIST_PAGES]
