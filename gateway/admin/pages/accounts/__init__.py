"""Accounts: who can still pay, and for how long.

listing.py   all accounts, those that run out first at the top
detail.py    one account: its balance, keys, ledger, limits
making.py    a new account
money.py     topping up, adjusting, the credit limit
pricing.py   its price list and discount, drafted beside what its requests would cost
standing.py  suspending and resuming, limits, where alerts go
"""

from gateway.admin.pages.accounts.detail import show_account
from gateway.admin.pages.accounts.listing import show_accounts
from gateway.admin.pages.accounts.making import ask_new, make
from gateway.admin.pages.accounts.money import MONEY
from gateway.admin.pages.accounts.pricing import PRICING
from gateway.admin.pages.accounts.standing import STANDING

PAGES = (show_accounts, show_account, ask_new, make, *MONEY, *PRICING, *STANDING)
