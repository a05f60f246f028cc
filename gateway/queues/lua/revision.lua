-- Notes which revision of the catalog a gateway has, and since when; forgets gateways that have been silent for an hour.
-- KEYS 1 revisions  hash: gateway -> "revision since seen", the instants in Unix milliseconds
-- ARGV 1 gateway, 2 revision
-- Answers nothing.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local since = now
local known = redis.call('HGET', KEYS[1], ARGV[1])
if known then
  local revision, first = string.match(known, '^(%d+) (%d+)')
  if revision == ARGV[2] then since = first end
end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%s %.0f %.0f', ARGV[2], tonumber(since), now))
local all = redis.call('HGETALL', KEYS[1])
for at = 1, #all, 2 do
  local seen = tonumber(string.match(all[at + 1], '(%d+)$'))
  if not seen or seen < now - 3600000 then redis.call('HDEL', KEYS[1], all[at]) end
end
