"""What an API key's owner reads at /usage, and statements and exports for operators beside it.

home.py         what the key spent, on what, and what is left of its budgets
requests.py     its requests, and one of them
statements.py   statements of the account that pays, for owners and for operators
exporting.py    requests and usage as files

Each query has the key of the session in it: nothing in an address can name another.
"""

from gateway.admin.pages.owner.exporting import EXPORTS
from gateway.admin.pages.owner.home import show_usage
from gateway.admin.pages.owner.requests import show_own_request, show_own_requests
from gateway.admin.pages.owner.statements import (
    list_account_statements,
    list_statements,
    show_account_statement,
    show_statement,
)

PAGES = (
    show_usage,
    show_own_requests,
    show_own_request,
    list_statements,
    show_statement,
    list_account_statements,
    show_account_statement,
    *EXPORTS,
)
