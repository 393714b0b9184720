local space, key = ARGV[2], ARGV[3]
local version = look(space, key)
if not version then return {} end
return { version, redis.call('HGET', P .. 'value:' .. space, key) }
