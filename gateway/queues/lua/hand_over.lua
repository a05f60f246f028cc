-- Lets leased requests go on in other pools: their leases go, the word of where they went takes the place of their
-- payloads, and what they are there goes to the settlements, from where a settler puts it into the other queue. A cancel
-- that their worker did not hear any more stays noted for it.
-- KEYS 1 settlements  2 jobs  3 leases  4 attempts  5 excused
--      6 moved     zset: id -> Unix milliseconds when the word of it may be dropped; all that is in here has left
--      7.. the event log of each request that is kept
-- ARGV 1 seconds a log is kept  2 the most milliseconds that a word is kept
--      then for each request: id, attempt, pool, payload there, word, deadline in Unix milliseconds (0 for none), '1' where kept
-- Answers the fenced ids. One that an earlier try handed over, whose answer was lost, is not among them.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local fenced, log = {}, 6
for i = 3, #ARGV, 7 do
  local id, attempt, word = ARGV[i], ARGV[i + 1], ARGV[i + 4]
  if ARGV[i + 6] == '1' then
    log = log + 1
  end
  if redis.call('ZSCORE', KEYS[3], id) and 1 + (redis.call('HGET', KEYS[4], id) or 0) == tonumber(attempt) then
    redis.call('XADD', KEYS[1], '*', 'moved', ARGV[i + 3], 'attempt', attempt, 'pool', ARGV[i + 2])
    redis.call('ZREM', KEYS[3], id)
    redis.call('HDEL', KEYS[4], id)
    redis.call('HDEL', KEYS[5], id)
    redis.call('HSET', KEYS[2], id, word)
    local deadline = tonumber(ARGV[i + 5])
    if deadline == 0 or deadline > now + ARGV[2] then
      deadline = now + ARGV[2]
    end
    redis.call('ZADD', KEYS[6], math.max(deadline, now) + 60000, id)
    if ARGV[i + 6] == '1' then
      if type(redis.pcall('XADD', KEYS[log], attempt .. '-*', 'seq', '-1', 'event', word)) == 'table' then
        redis.call('DEL', KEYS[log]) -- the log is of a later attempt, from before the queue forgot this request
        redis.call('XADD', KEYS[log], attempt .. '-0', 'seq', '-1', 'event', word)
      end
      redis.call('EXPIRE', KEYS[log], ARGV[1])
      redis.call('PUBLISH', KEYS[log], '')
    end
  elseif redis.call('HGET', KEYS[2], id) ~= word then
    fenced[#fenced + 1] = id
  end
end
return fenced
