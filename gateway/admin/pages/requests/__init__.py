"""Requests: what happened to these calls, and where the time and the money of one of them went.

listing.py     the list, its histogram, its filters in the address
tail.py        what came in since the list was drawn
detail.py      one request
waterfall.py   where its time went, as one drawing
bill.py        what it cost, line by line
refunding.py   giving its charge back
"""

from gateway.admin.pages.requests.detail import show_request
from gateway.admin.pages.requests.listing import show_requests
from gateway.admin.pages.requests.refunding import ask_refund, refund
from gateway.admin.pages.requests.tail import follow_requests

PAGES = (show_requests, follow_requests, show_request, ask_refund, refund)
