local prefix, limit = ARGV[2], ARGV[3]
local answer = {}
for _, space in ipairs(redis.call('ZRANGEBYLEX', P .. 'spaces', '[' .. prefix, '+', 'LIMIT', 0, limit)) do
  if not begins(space, prefix) then break end
  answer[#answer + 1] = space
  answer[#answer + 1] = string.format('%.0f', redis.call('ZCARD', P .. 'key:' .. space))
end
return answer
