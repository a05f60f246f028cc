-- Notes a gateway's sign of life, and forgets those that have been silent for an hour.
-- KEYS 1 gateways  zset: name -> Unix milliseconds of its last sign of life
-- ARGV 1 gateway
-- Answers nothing.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 3600000)
