local space = ARGV[2]
local all = redis.call('ZRANGE', P .. 'key:' .. space, 0, -1)
for _, key in ipairs(all) do drop(space, key) end
return { string.format('%.0f', #all) }
