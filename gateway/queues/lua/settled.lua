-- Acknowledges and removes settlements in one step, so that none stays behind unread and unremoved.
-- KEYS 1 settlements
-- ARGV 1 consumer group  2.. entry ids
-- Answers how many were removed.
redis.call('XACK', KEYS[1], unpack(ARGV))
return redis.call('XDEL', KEYS[1], unpack(ARGV, 2))
