-- Puts requests into the fair queue. One that is queued or leased already is left alone, and so is one that has left
-- for another pool, unless it comes back with an attempt as late as it left with.
-- KEYS 1 queue     zset: id -> virtual finish time (0 for what was returned to the front)
--      2 jobs      hash: id -> payload, of all that is queued or leased; of what has left, the word of where it went
--      3 tags      hash: account -> virtual finish time of its last request; '' -> the queue's virtual time
--      4 wake      list: one token while there is work
--      5 tally     hash: 'in' -> how many requests have ever come
--      6 attempts  7 excused  8 moved: only where requests had attempts in another pool
-- ARGV four for each request: id, account, cost (expected work over weight), payload; a fifth where there are eight keys:
--      the number of its last attempt
-- Answers how many wait.
local ids = {}
local width = #KEYS == 8 and 5 or 4
for i = 1, #ARGV, width do
  ids[#ids + 1] = ARGV[i]
end
local known = redis.call('HMGET', KEYS[2], unpack(ids))
local now = tonumber(redis.call('HGET', KEYS[3], '') or 0)
local last, jobs, places = {}, {}, {}
for k = 1, #ids do
  local i = width * (k - 1) + 4
  local before = width == 5 and tonumber(ARGV[i + 1]) or 0
  local left = before > 0 and known[k] and tonumber(string.match(known[k], '^m(%d+) '))
  if left and left <= before then
    redis.call('ZREM', KEYS[8], ids[k])
    known[k] = false
  end
  if not known[k] then
    if before > 0 then
      redis.call('HSET', KEYS[6], ids[k], before)
      redis.call('HSET', KEYS[7], ids[k], before)
    end
    local account = ARGV[i - 2]
    local finish = last[account] or tonumber(redis.call('HGET', KEYS[3], account) or 0)
    if finish < now then
      finish = now
    end
    finish = finish + ARGV[i - 1]
    last[account] = finish
    local j = #jobs
    jobs[j + 1], jobs[j + 2] = ids[k], ARGV[i]
    places[j + 1], places[j + 2] = finish, ids[k]
  end
end
if #jobs > 0 then
  redis.call('HSET', KEYS[2], unpack(jobs))
  redis.call('HINCRBY', KEYS[5], 'in', #jobs / 2)
  redis.call('ZADD', KEYS[1], unpack(places))
  local tags = {}
  for account, finish in pairs(last) do
    tags[#tags + 1] = account
    tags[#tags + 1] = finish
  end
  redis.call('HSET', KEYS[3], unpack(tags))
  if redis.call('EXISTS', KEYS[4]) == 0 then
    redis.call('RPUSH', KEYS[4], '1')
  end
end
return redis.call('ZCARD', KEYS[1])
