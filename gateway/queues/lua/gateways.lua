-- Names the gateways that live.
-- KEYS 1 gateways
-- ARGV 1 milliseconds of silence after which a gateway is left out
-- Answers their names.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[1], '+inf')
