-- Lists the workers that live.
-- KEYS 1 workers
-- ARGV 1 milliseconds of silence after which a worker is left out
-- Answers their packed statuses.
local time = redis.call('TIME')
local oldest = time[1] * 1000 + math.floor(time[2] / 1000) - ARGV[1]
local alive = {}
for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
  local space = string.find(value, ' ', 1, true)
  if tonumber(string.sub(value, 1, space - 1)) >= oldest then
    alive[#alive + 1] = string.sub(value, space + 1)
  end
end
return alive
