"""The queue of a pool, its leases, replies and settlements, in Redis and in memory.

Workers import this package too (docs/decisions/0001-workers-import-the-queue.md), so it imports
nothing of Faregate but `gateway.contract`.
"""
