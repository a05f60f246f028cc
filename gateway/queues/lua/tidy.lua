-- Drops what would grow without bound: tags at or below the virtual time, workers and settlers long gone, the word of
-- requests that went on in other pools and are past their deadline.
-- KEYS 1 tags  2 workers  3 settlements  4 moved  5 jobs  6 cancels  7 orders
-- ARGV 1 cursor over the tags ('0' to begin)  2 consumer group  3 milliseconds of silence after which a worker or settler is gone
-- Answers the next cursor.
local scan = redis.call('HSCAN', KEYS[1], ARGV[1], 'COUNT', 1000)
local virtual = tonumber(redis.call('HGET', KEYS[1], '') or 0)
local past = {}
for i = 1, #scan[2], 2 do
  if scan[2][i] ~= '' and tonumber(scan[2][i + 1]) <= virtual then
    past[#past + 1] = scan[2][i]
  end
end
for i = 1, #past, 1000 do
  redis.call('HDEL', KEYS[1], unpack(past, i, math.min(i + 999, #past)))
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local gone = redis.call('ZRANGEBYSCORE', KEYS[4], '-inf', now, 'LIMIT', 0, 10000)
for i = 1, #gone, 1000 do
  local last = math.min(i + 999, #gone)
  redis.call('HDEL', KEYS[5], unpack(gone, i, last))
  redis.call('HDEL', KEYS[6], unpack(gone, i, last))
  redis.call('ZREM', KEYS[4], unpack(gone, i, last))
end
local oldest = now - ARGV[3]
local workers = redis.call('HGETALL', KEYS[2])
for i = 1, #workers, 2 do
  if tonumber(string.match(workers[i + 1], '^%d+')) < oldest then
    redis.call('HDEL', KEYS[2], workers[i])
    redis.call('HDEL', KEYS[7], workers[i])
  end
end
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[3], ARGV[2])
for _, consumer in ipairs(consumers) do
  local fields = {}
  for i = 1, #consumer, 2 do
    fields[consumer[i]] = consumer[i + 1]
  end
  if fields.pending == 0 and fields.idle > tonumber(ARGV[3]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[3], ARGV[2], fields.name)
  end
end
return scan[1]
