-- Tells the pool, or one worker of it, to take no more requests, or to go on.
-- KEYS 1 orders  2 workers  3 queue  4 wake
-- ARGV 1 worker; '' for the whole pool  2 'stop' or 'go'
-- Answers 1 where that is new, 0 where it stood so, -1 where the pool has no such worker.
local whom = ARGV[1]
if ARGV[2] == 'go' then
  local lifted = redis.call('HDEL', KEYS[1], whom)
  if redis.call('EXISTS', KEYS[3]) == 1 and redis.call('EXISTS', KEYS[4]) == 0 then
    redis.call('RPUSH', KEYS[4], '1') -- whoever was woken in the meantime found nothing to take
  end
  return lifted
end
if whom ~= '' and redis.call('HEXISTS', KEYS[2], whom) == 0 then
  return -1
end
return redis.call('HSETNX', KEYS[1], whom, whom == '' and 'pause' or 'drain')
