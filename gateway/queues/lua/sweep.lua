-- Returns expired leases to the front of the queue. What was taken as often as allowed, or was to stop, is
-- given up: its payload goes to the settlements, where a settler makes its terminal event.
-- KEYS 1 queue  2 jobs  3 wake  4 leases  5 attempts  6 excused  7 cancels  8 settlements
-- ARGV 1 attempts allowed  2 how many leases at most
-- Answers {how many were returned, ids given up}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expired = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now, 'LIMIT', 0, ARGV[2])
local returned, given_up = 0, {}
for _, id in ipairs(expired) do
  redis.call('ZREM', KEYS[4], id)
  local attempt = redis.call('HINCRBY', KEYS[5], id, 1)
  local stop = redis.call('HGET', KEYS[7], id)
  if stop or attempt - (redis.call('HGET', KEYS[6], id) or 0) >= tonumber(ARGV[1]) then
    local payload = redis.call('HGET', KEYS[2], id)
    redis.call('XADD', KEYS[8], '*', 'lost', payload, 'attempt', attempt, 'cancel', stop or '')
    for _, key in ipairs({KEYS[2], KEYS[5], KEYS[6], KEYS[7]}) do
      redis.call('HDEL', key, id)
    end
    given_up[#given_up + 1] = id
  else
    redis.call('ZADD', KEYS[1], 0, id)
    returned = returned + 1
  end
end
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('EXISTS', KEYS[3]) == 0 then
  redis.call('RPUSH', KEYS[3], '1') -- also where a worker died with the token
end
return {returned, given_up}
