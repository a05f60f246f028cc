-- Extends leases, leaves the worker's status, and gives it its orders.
-- KEYS 1 leases  2 attempts  3 cancels
--      4 workers   hash: name -> Unix milliseconds of its last heartbeat, a space, its packed status
--      5 orders
-- ARGV 1 lease in milliseconds  2 worker  3 packed status  4 how many requests (n)  then n ids, n attempts
-- Answers {ids whose lease is gone or belongs to a later attempt, ids that are to stop, each followed by its canceller's packed terminal event,
-- 1 where the worker is to take no more}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[4], ARGV[2], string.format('%d ', now) .. ARGV[3])
local drain = redis.call('HEXISTS', KEYS[5], ARGV[2])
local n = tonumber(ARGV[4])
local lost, cancelled = {}, {}
if n == 0 then
  return {lost, cancelled, drain}
end
local ids = {unpack(ARGV, 5, 4 + n)}
local leases = redis.call('ZMSCORE', KEYS[1], unpack(ids))
local before = redis.call('EXISTS', KEYS[2]) == 1 and redis.call('HMGET', KEYS[2], unpack(ids))
local stop = redis.call('EXISTS', KEYS[3]) == 1 and redis.call('HMGET', KEYS[3], unpack(ids))
local extended = {}
for i = 1, n do
  if leases[i] and 1 + (before and before[i] or 0) == tonumber(ARGV[4 + n + i]) then
    extended[#extended + 1] = now + ARGV[1]
    extended[#extended + 1] = ids[i]
    if stop and stop[i] then
      cancelled[#cancelled + 1] = ids[i]
      cancelled[#cancelled + 1] = stop[i]
    end
  else
    lost[#lost + 1] = ids[i]
  end
end
if #extended > 0 then
  redis.call('ZADD', KEYS[1], unpack(extended))
end
return {lost, cancelled, drain}
