-- Counts a try to sign in, by who tries and in all, or gives back one that was right.
-- KEYS 1 who  2 all: each the instant, in Unix microseconds, up to which what was tried slows what is tried
-- ARGV 1 'take' or 'give'  2 the burst  3 microseconds between tries  4 the burst in all  5 the same in all
-- Answers the microseconds to wait; 0 where the try is counted, or given back.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function leave(key, at)
  if at > now then
    redis.call('SET', key, string.format('%.0f', at), 'PX', math.ceil((at - now) / 1000))
  else
    redis.call('DEL', key)
  end
end
local mine = tonumber(redis.call('GET', KEYS[1]) or 0)
local all = tonumber(redis.call('GET', KEYS[2]) or 0)
if ARGV[1] == 'give' then
  leave(KEYS[1], mine - ARGV[3])
  leave(KEYS[2], all - ARGV[5])
  return 0
end
mine, all = math.max(mine, now), math.max(all, now)
local wait = math.max(mine - now - (ARGV[2] - 1) * ARGV[3], all - now - (ARGV[4] - 1) * ARGV[5])
if wait > 0 then return math.ceil(wait) end
leave(KEYS[1], mine + ARGV[3])
leave(KEYS[2], all + ARGV[5])
return 0
