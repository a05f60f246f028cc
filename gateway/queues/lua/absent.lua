-- Says which requests are neither queued nor leased, and which have left for other pools.
-- KEYS 1 jobs  2 settlements  3 moved
-- ARGV 1 how many unsettled entries are too many to look through  2.. ids
-- Answers {absent ids, ids that have left, each followed by the word of it}, or -1 when there are too many unsettled entries.
if redis.call('XLEN', KEYS[2]) > tonumber(ARGV[1]) then
  return -1
end
local absent, left = {}, {}
local moved = redis.call('EXISTS', KEYS[3]) == 1
for i = 2, #ARGV do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0 then
    absent[#absent + 1] = ARGV[i]
  elseif moved and redis.call('ZSCORE', KEYS[3], ARGV[i]) then
    left[#left + 1] = ARGV[i]
    left[#left + 1] = redis.call('HGET', KEYS[1], ARGV[i])
  end
end
return {absent, left}
