"""How long and how much: the limits that all kinds of queue share."""

LEASE_MS = 10_000
"""The lease until the pool's specification has been read."""
SILENT_MS = 3_000
"""Three heartbeats: the silence after which a worker counts as gone."""
IDLE_MS = 5_000
"""How long an entry of the settlements is left to the settler that read it."""
GONE_MS = 3_600_000
"""The silence after which the names of workers and settlers are forgotten."""
MOST_AT_ONCE = 500
"""Requests in one script: Lua unpacks at most some thousands of values, and Redis serves others in between."""
MOST_EXPIRED = 500
"""Leases that one sweep looks at."""
MOST_UNSETTLED = 10_000
"""Entries of the settlements that `missing` looks through; beyond that it does not know."""
