"""Keys: what each may do, and how near it is to its limits.

listing.py   all keys, those nearest to their limits first
detail.py    one key: its limits, what it spent
making.py    a new key, whose secret is shown once
editing.py   its name, models, addresses, expiry; its limits
revoking.py  stopping it for good
"""

from gateway.admin.pages.keys.detail import show_key
from gateway.admin.pages.keys.editing import ask_edit, ask_limits, change_limits, edit
from gateway.admin.pages.keys.listing import show_keys
from gateway.admin.pages.keys.making import ask_new, make
from gateway.admin.pages.keys.revoking import ask_revoke, revoke

PAGES = (show_keys, show_key, ask_new, make, ask_edit, edit, ask_limits, change_limits, ask_revoke, revoke)
