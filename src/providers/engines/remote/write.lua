local space, key, text, condition = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local most_keys, most_bytes, expires = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
local version = tonumber(redis.call('GET', P .. 'version') or '0') + 1
if key == '' then key = string.format('%020.0f', version) end
local meta, value, keys = names(space)
local at, old, expired = look(space, key)
if condition ~= 'any' and (at or 'absent') ~= condition then return { 'conflict', at or '' } end
local size = #space + #key + #text
local total = tonumber(redis.call('GET', P .. 'bytes') or '0')
local after = total - tonumber(old or '0') + size
if not at and redis.call('ZCARD', keys) + 1 > most_keys then return { 'keys' } end
if after > total and after > most_bytes then return { 'bytes' } end
local shown = string.format('%.0f', version)
redis.call('SET', P .. 'version', shown)
redis.call('INCRBY', P .. 'bytes', string.format('%.0f', after - total))
redis.call('HSET', meta, key, shown .. ' ' .. string.format('%.0f', size) .. ' ' .. expires)
redis.call('HSET', value, key, text)
redis.call('ZADD', keys, 0, key)
redis.call('ZADD', P .. 'spaces', 0, space)
if expired and expired ~= '0' then redis.call('ZREM', P .. 'expiring', space .. '\0' .. key) end
if expires ~= '0' then redis.call('ZADD', P .. 'expiring', expires, space .. '\0' .. key) end
return { 'done', key, shown }
