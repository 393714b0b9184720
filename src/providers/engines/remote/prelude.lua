-- What every script begins with. KEYS[1] is the prefix of all our keys; ARGV[1] is the time.
-- For each space there are: meta (key -> "version size expires"), value (key -> text) and key (the
-- keys, sorted). For all spaces together: spaces, expiring, bytes and version.
local P, now = KEYS[1], ARGV[1]

local function names(space)
  return P .. 'meta:' .. space, P .. 'value:' .. space, P .. 'key:' .. space
end

local function look(space, key)
  local raw = redis.call('HGET', P .. 'meta:' .. space, key)
  if not raw then return nil end
  return string.match(raw, '^(%d+) (%d+) (%d+)$')
end

local function drop(space, key)
  local meta, value, keys = names(space)
  local _, size, expires = look(space, key)
  if not size then return end
  redis.call('HDEL', meta, key)
  redis.call('HDEL', value, key)
  redis.call('ZREM', keys, key)
  if redis.call('ZCARD', keys) == 0 then redis.call('ZREM', P .. 'spaces', space) end
  redis.call('DECRBY', P .. 'bytes', size)
  if expires ~= '0' then redis.call('ZREM', P .. 'expiring', space .. '\0' .. key) end
end

local function forget()
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', P .. 'expiring', '-inf', now)) do
    local at = string.find(name, '\0', 1, true)
    drop(string.sub(name, 1, at - 1), string.sub(name, at + 1))
  end
end

local function begins(text, prefix)
  return string.sub(text, 1, #prefix) == prefix
end

forget()
