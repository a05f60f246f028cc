-- Puts requests into the fair queue. One that is queued or leased already is left alone.
-- KEYS 1 queue     zset: id -> virtual finish time (0 for what was returned to the front)
--      2 jobs      hash: id -> payload, of all that is queued or leased
--      3 tags      hash: account -> virtual finish time of its last request; '' -> the queue's virtual time
--      4 wake      list: one token while there is work
-- ARGV four for each request: id, account, cost (expected work over weight), payload
-- Answers how many wait.
local ids = {}
for i = 1, #ARGV, 4 do
  ids[#ids + 1] = ARGV[i]
end
local known = redis.call('HMGET', KEYS[2], unpack(ids))
local now = tonumber(redis.call('HGET', KEYS[3], '') or 0)
local last, jobs, places = {}, {}, {}
for k = 1, #ids do
  if not known[k] then
    local i = 4 * k
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
