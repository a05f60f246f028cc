-- Drops the word of requests that went on in other pools, and have ended there.
-- KEYS 1 moved  2 jobs  3 cancels
-- ARGV ids
-- Answers nothing.
for _, id in ipairs(ARGV) do
  if redis.call('ZREM', KEYS[1], id) == 1 then
    redis.call('HDEL', KEYS[2], id)
    redis.call('HDEL', KEYS[3], id)
  end
end
