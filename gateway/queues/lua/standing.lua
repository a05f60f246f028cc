-- Says where a request is.
-- KEYS 1 queue  2 leases  3 attempts  4 jobs
-- ARGV 1 id
-- Answers {'queued', position}, {'leased', attempt}, {'moved', the word of where it went} or {'absent', 0}.
local position = redis.call('ZRANK', KEYS[1], ARGV[1])
if position then
  return {'queued', position}
end
if redis.call('ZSCORE', KEYS[2], ARGV[1]) then
  return {'leased', 1 + (redis.call('HGET', KEYS[3], ARGV[1]) or 0)}
end
local word = redis.call('HGET', KEYS[4], ARGV[1])
if word then
  return {'moved', word}
end
return {'absent', 0}
