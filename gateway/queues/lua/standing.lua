-- Says where a request is.
-- KEYS 1 queue  2 leases  3 attempts
-- ARGV 1 id
-- Answers {'queued', position}, {'leased', attempt} or {'absent', 0}.
local position = redis.call('ZRANK', KEYS[1], ARGV[1])
if position then
  return {'queued', position}
end
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  return {'leased', 1 + (redis.call('HGET', KEYS[3], ARGV[1]) or 0)}
end
return {'absent', 0}
