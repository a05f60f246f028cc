-- Says which requests are neither queued nor leased.
-- KEYS 1 jobs  2 settlements
-- ARGV 1 how many unsettled entries are too many to look through  2.. ids
-- Answers the absent ids, or -1 when there are too many unsettled entries.
if redis.call('XLEN', KEYS[2]) > tonumber(ARGV[1]) then
  return -1
end
local absent = {}
for i = 2, #ARGV do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0 then
    absent[#absent + 1] = ARGV[i]
  end
end
return absent
