-- Passes a wake-up on that was received and not used.
-- KEYS 1 queue  2 wake
-- ARGV none
-- Answers nothing.
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('RPUSH', KEYS[2], '1')
end
