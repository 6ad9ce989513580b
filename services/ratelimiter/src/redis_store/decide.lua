-- One decision of the rate limiter in one atomic step: src/rule.rs in Lua.
-- KEYS[1]  the state of one subject of a rule
-- ARGV     1 event (1 counted, 0 not counted), 2 fingerprint of the e-mail, 3 ban in ms, 4 window in ms,
--          5 failures forgiven, 6 e-mails forgiven, 7 memory in ms, 8 mode, 9 inclusive (0, 1),
--          10 time in ms; empty: the clock of Redis
-- Returns  {limited (0, 1), starts a ban (0, 1), time until the end of the ban in ms,
--          failures in the window}
if redis.replicate_commands then redis.replicate_commands() end

local now
if ARGV[10] == '' then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
else
  now = tonumber(ARGV[10])
end
local email, ban, window = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local failures_max, emails_max, memory = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

-- A list of: end of the ban, newest failure, times, e-mails, when each was seen (oldest first).
local state
local packed = redis.call('GET', KEYS[1])
if packed then
  local ok, read = pcall(cmsgpack.unpack, packed)
  if ok and type(read) == 'table' and #read == 5 then state = read end
end
state = state or {0, 0, {}, {}, {}}

if state[1] > now then return {1, 0, state[1] - now, 0} end

local function is_recent(time, limit) return math.max(0, now - time) < limit end

local times, emails, seen = {}, {}, {}
for _, time in ipairs(state[3]) do
  if is_recent(time, window) then times[#times + 1] = time end
end
if ARGV[1] == '0' then return {0, 0, 0, #times} end
local keeps_all = ARGV[8] == 'original' and is_recent(state[2], memory)
for place, known in ipairs(state[4]) do
  local counts = keeps_all or (ARGV[8] == 'fixed' and is_recent(state[5][place], window))
  if counts and known ~= email then
    emails[#emails + 1] = known
    seen[#seen + 1] = state[5][place]
  end
end
local prior = #times
times[#times + 1] = now
emails[#emails + 1] = email
seen[#seen + 1] = now
while #times > failures_max + 1 do table.remove(times, 1) end
while #emails > emails_max + 1 do
  table.remove(emails, 1)
  table.remove(seen, 1)
end

local exceeded
if ARGV[9] == '1' then
  exceeded = prior + 1 >= failures_max and #emails >= emails_max
else
  exceeded = prior > failures_max and #emails > emails_max
end
local function keep(new_state, lifetime)
  if lifetime > 0 then
    redis.call('SET', KEYS[1], cmsgpack.pack(new_state), 'PX', lifetime)
  else
    redis.call('DEL', KEYS[1])
  end
end
if exceeded then
  keep({now + ban, now, {}, {}, {}}, ban)
  return {1, 1, ban, 0}
end
keep({0, now, times, emails, seen}, memory)
return {0, 0, 0, #times}
