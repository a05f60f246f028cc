-- Appends events to the log of a kept request. An attempt that lost adds nothing; a new attempt drops what
-- an earlier one wrote.
-- KEYS 1 log (stream; ids are attempt-n; the key's name is also the channel that is told of it)
-- ARGV 1 attempt  2 entries kept at most  3 seconds kept after the last write  then pairs: sequence number, packed event
-- Answers how many were added.
local added = 0
for i = 4, #ARGV, 2 do
  local id = redis.pcall('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], ARGV[1] .. '-*', 'seq', ARGV[i], 'event', ARGV[i + 1])
  if type(id) == 'table' then
    return added -- its attempt is older than the last entry's
  end
  if id == ARGV[1] .. '-0' then
    redis.call('XTRIM', KEYS[1], 'MINID', id)
  end
  added = added + 1
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('PUBLISH', KEYS[1], '')
return added
