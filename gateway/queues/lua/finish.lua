-- Ends leased requests: their terminal events go to the settlements and to whoever waits, their leases go.
-- All or nothing: where one of them is fenced (its lease is gone or belongs to a later attempt) nothing is
-- done, and the caller comes again with the rest.
-- KEYS 1 settlements  2 jobs  3 leases  4 attempts  5 excused  6 cancels  7.. one event log for each kept request
-- ARGV 1 '1' when the answer to an earlier try was lost: what is then gone altogether has been finished by that try
--      2 how many requests (n)  3 their terminal events, packed for the stream  4 how many channels (c)
--      5 seconds a log is kept  then n ids, n attempts, c pairs of channel and packed frames,
--      and for each event log: attempt, sequence number, packed event
-- Answers {} when done, else {fenced ids, ids finished before}.
local n = tonumber(ARGV[2])
local ids = {unpack(ARGV, 6, 5 + n)}
local leases = redis.call('ZMSCORE', KEYS[3], unpack(ids))
local before = redis.call('EXISTS', KEYS[4]) == 1 and redis.call('HMGET', KEYS[4], unpack(ids))
local fenced, finished = {}, {}
for i = 1, n do
  if not leases[i] or 1 + (before and before[i] or 0) ~= tonumber(ARGV[5 + n + i]) then
    if ARGV[1] == '1' and redis.call('HEXISTS', KEYS[2], ids[i]) == 0 then
      finished[#finished + 1] = ids[i]
    else
      fenced[#fenced + 1] = ids[i]
    end
  end
end
if #fenced + #finished > 0 then
  return {fenced, finished}
end
redis.call('XADD', KEYS[1], '*', 'ended', ARGV[3])
redis.call('ZREM', KEYS[3], unpack(ids))
redis.call('HDEL', KEYS[2], unpack(ids))
if before then
  redis.call('HDEL', KEYS[4], unpack(ids))
  redis.call('HDEL', KEYS[5], unpack(ids))
end
if redis.call('EXISTS', KEYS[6]) == 1 then
  redis.call('HDEL', KEYS[6], unpack(ids))
end
local at = 6 + 2 * n
for _ = 1, tonumber(ARGV[4]) do
  redis.call('PUBLISH', ARGV[at], ARGV[at + 1])
  at = at + 2
end
for k = 7, #KEYS do
  local entry = redis.pcall('XADD', KEYS[k], ARGV[at] .. '-*', 'seq', ARGV[at + 1], 'event', ARGV[at + 2])
  if type(entry) == 'table' then -- the log is of a later attempt, from before the queue forgot this request
    redis.call('DEL', KEYS[k])
    redis.call('XADD', KEYS[k], ARGV[at] .. '-0', 'seq', ARGV[at + 1], 'event', ARGV[at + 2])
  elseif entry == ARGV[at] .. '-0' then
    redis.call('XTRIM', KEYS[k], 'MINID', entry)
  end
  redis.call('EXPIRE', KEYS[k], ARGV[5])
  redis.call('PUBLISH', KEYS[k], '')
  at = at + 3
end
return {}
