-- Returns leased requests to the front of the queue. The taking counts as an attempt, so that its fence
-- holds, and is excused, so that it is not counted towards giving up.
-- KEYS 1 queue  2 wake  3 leases  4 attempts
--      5 excused   hash: id -> how many of its takings were given back, or were in other pools
-- ARGV pairs: id, attempt
-- Answers how many were returned.
local returned = 0
for i = 1, #ARGV, 2 do
  local id = ARGV[i]
  local before = redis.call('HGET', KEYS[4], id) or 0
  if redis.call('ZSCORE', KEYS[3], id) and 1 + before == tonumber(ARGV[i + 1]) then
    redis.call('ZREM', KEYS[3], id)
    redis.call('HINCRBY', KEYS[4], id, 1)
    redis.call('HINCRBY', KEYS[5], id, 1)
    redis.call('ZADD', KEYS[1], 0, id)
    returned = returned + 1
  end
end
if returned > 0 and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('RPUSH', KEYS[2], '1')
end
return returned
