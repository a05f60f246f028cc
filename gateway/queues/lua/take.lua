-- Takes the next requests under lease, and passes the wake-up on while work remains.
-- KEYS 1 queue  2 jobs  3 tags  4 wake
--      5 leases    zset: id -> expiry, milliseconds of the server's clock
--      6 attempts  hash: id -> how often it was taken before, of those that were
--      7 excused   hash: id -> how many of those do not count towards giving up
--      8 orders    hash: worker -> 'drain'; '' -> 'pause' while nobody may take
-- ARGV 1 how many  2 lease in milliseconds
-- Answers {server's Unix microseconds, payload, attempt, excused, payload, attempt, excused, ...}, or {} when nothing waits or nobody may take.
if redis.call('HEXISTS', KEYS[8], '') == 1 then
  return {}
end
local got = redis.call('ZPOPMIN', KEYS[1], ARGV[1])
if #got == 0 then
  return {}
end
local time = redis.call('TIME')
local expiry = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2]
local ids, leases = {}, {}
for i = 1, #got, 2 do
  ids[#ids + 1] = got[i]
  leases[i], leases[i + 1] = expiry, got[i]
end
redis.call('ZADD', KEYS[5], unpack(leases))
local payloads = redis.call('HMGET', KEYS[2], unpack(ids))
local before = redis.call('EXISTS', KEYS[6]) == 1 and redis.call('HMGET', KEYS[6], unpack(ids))
local excused = before and redis.call('HMGET', KEYS[7], unpack(ids))
local answer = {time[1] * 1000000 + time[2]}
for i = 1, #ids do
  if payloads[i] then
    answer[#answer + 1] = payloads[i]
    answer[#answer + 1] = 1 + (before and before[i] or 0)
    answer[#answer + 1] = tonumber(excused and excused[i] or 0)
  else
    redis.call('ZREM', KEYS[5], ids[i])
  end
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('DEL', KEYS[3]) -- empty: every tag lies in the past
else
  if tonumber(got[#got]) > 0 then
    redis.call('HSET', KEYS[3], '', got[#got])
  end
  if redis.call('EXISTS', KEYS[4]) == 0 then
    redis.call('RPUSH', KEYS[4], '1')
  end
end
return answer
