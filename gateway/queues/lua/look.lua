-- Shows a pool to operators: how full it is, who stands at the head of its queue, its workers, its orders.
-- KEYS 1 queue  2 leases  3 settlements  4 tally  5 orders  6 workers
-- ARGV 1 how many of the queue's head
-- Answers {waiting, leased, settling, how many have ever come, ids at the head, who has orders ('' is the pool),
-- workers: milliseconds since the last heartbeat, packed status, ...}.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local workers = {}
for _, value in ipairs(redis.call('HVALS', KEYS[6])) do
  local space = string.find(value, ' ', 1, true)
  workers[#workers + 1] = now - tonumber(string.sub(value, 1, space - 1))
  workers[#workers + 1] = string.sub(value, space + 1)
end
return {
  redis.call('ZCARD', KEYS[1]),
  redis.call('ZCARD', KEYS[2]),
  redis.call('XLEN', KEYS[3]),
  tonumber(redis.call('HGET', KEYS[4], 'in') or 0),
  redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1),
  redis.call('HKEYS', KEYS[5]),
  workers,
}
