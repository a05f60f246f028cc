-- Leaves word of a request that its pool gave up and that goes on in another; where it is known again it stays as it is.
-- KEYS 1 jobs  2 moved  3 the event log of the request
-- ARGV 1 id  2 attempt  3 word  4 deadline in Unix milliseconds (0 for none)  5 the most milliseconds that a word is kept
--      6 '1' where the request is kept  7 seconds a log is kept
-- Answers nothing.
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[3]) == 0 then
  return
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local deadline = tonumber(ARGV[4])
if deadline == 0 or deadline > now + ARGV[5] then
  deadline = now + ARGV[5]
end
redis.call('ZADD', KEYS[2], math.max(deadline, now) + 60000, ARGV[1])
if ARGV[6] == '1' then
  redis.pcall('XADD', KEYS[3], ARGV[2] .. '-*', 'seq', '-1', 'event', ARGV[3])
  redis.call('EXPIRE', KEYS[3], ARGV[7])
  redis.call('PUBLISH', KEYS[3], '')
end
