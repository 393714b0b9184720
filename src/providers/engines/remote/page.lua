local space, prefix, after, limit = ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local from = '[' .. prefix
if after ~= '' and after >= prefix then from = '(' .. after end
local answer = { '0' }
for _, key in ipairs(redis.call('ZRANGEBYLEX', P .. 'key:' .. space, from, '+', 'LIMIT', 0, limit + 1)) do
  if not begins(key, prefix) then break end
  if #answer > limit * 3 then
    answer[1] = '1'
    break
  end
  local version, size = look(space, key)
  answer[#answer + 1] = key
  answer[#answer + 1] = version
  answer[#answer + 1] = string.format('%.0f', tonumber(size) - #space - #key)
end
return answer
