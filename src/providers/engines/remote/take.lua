local space, key, wanted = ARGV[2], ARGV[3], ARGV[4]
local version = look(space, key)
if not version then return { 'absent' } end
if wanted ~= '' and wanted ~= version then return { 'conflict', version } end
local text = redis.call('HGET', P .. 'value:' .. space, key)
drop(space, key)
return { 'entry', version, text }
