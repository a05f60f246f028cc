"""The queue of a pool, its leases, replies and settlements, in Redis and in memory.

    port.py            what gateways, workers and settlers may do
    redis_queue.py     the gateways' side; redis_worker.py, redis_settler.py: the other two
    lua/               every change in Redis is one script; keys.py names what they touch
    replies.py         what a gateway hears of its requests; order.py says whether something is missing
    event_log.py       reading what is kept of a request's events
    moves.py           requests that go on in another pool, and the word that stays of them
    tries.py           tries to sign in, counted for all gateways
    wire.py            the Redis client; subscriber.py listens to channels; connection.py is under both
    memory.py          the twin of all three sides, with memory_settler.py, over memory_pool.py

Workers import this package too (docs/decisions/0001-workers-import-the-queue.md), so it imports
nothing of Faregate but `gateway.contract`.
"""
