-- Stops a request. A waiting one is removed, and its end goes to the settlements; a leased one's worker is told.
-- For one that has left for another pool the end is noted, in case it is on its way: whoever puts it in there looks.
-- KEYS 1 queue  2 jobs  3 tags  4 leases  5 attempts  6 excused
--      7 cancels   hash: id -> the canceller's packed terminal event, of leased requests that are to stop
--      8 settlements  9 the request's event log
-- ARGV 1 id  2 terminal event, packed for the stream  3 terminal event, packed for the log; '' for none
--      4 seconds a log is kept  5 channel of the pool's workers  6 reason
-- Answers 'removed', 'told', 'absent', or the word of where it went.
local id = ARGV[1]
if redis.call('ZREM', KEYS[1], id) == 1 then
  local attempt = 1 + (redis.call('HGET', KEYS[5], id) or 0)
  redis.call('XADD', KEYS[8], '*', 'ended', ARGV[2])
  for _, key in ipairs({KEYS[2], KEYS[5], KEYS[6], KEYS[7]}) do
    redis.call('HDEL', key, id)
  end
  if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('DEL', KEYS[3])
  end
  if ARGV[3] ~= '' then
    local entry = redis.pcall('XADD', KEYS[9], attempt .. '-*', 'seq', '-1', 'event', ARGV[3])
    if type(entry) == 'table' then -- the log is of a later attempt, from before the queue forgot this request
      redis.call('DEL', KEYS[9])
      redis.call('XADD', KEYS[9], attempt .. '-0', 'seq', '-1', 'event', ARGV[3])
    elseif entry == attempt .. '-0' then
      redis.call('XTRIM', KEYS[9], 'MINID', entry)
    end
    redis.call('EXPIRE', KEYS[9], ARGV[4])
    redis.call('PUBLISH', KEYS[9], '')
  end
  return 'removed'
end
if redis.call('ZSCORE', KEYS[4], id) then
  redis.call('HSET', KEYS[7], id, ARGV[2])
  redis.call('PUBLISH', ARGV[5], id .. ' ' .. ARGV[6])
  return 'told'
end
local word = redis.call('HGET', KEYS[2], id)
if word and string.sub(word, 1, 1) == 'm' then
  redis.call('HSET', KEYS[7], id, ARGV[2])
  return word
end
return 'absent'
