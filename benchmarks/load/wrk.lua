-- Sends the requests of a manifest in turn: wrk -s wrk.lua URL -- MANIFEST THINK_MS  (see wrk.py)

local requests = {}

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

function init(arguments)
  for line in io.lines(arguments[1]) do
    local words = {}
    for word in line:gmatch("[^\t]+") do words[#words + 1] = word end
    local headers = {}
    for i = 3, #words, 2 do headers[words[i]] = words[i + 1] end
    requests[#requests + 1] = { path = words[1], headers = headers, body = read(words[2]) }
  end
  local think = tonumber(arguments[2])
  if think > 0 then
    -- Exponential, like the times between independent arrivals; wrk accepts whole milliseconds.
    function delay() return math.floor(-think * math.log(1 - math.random()) + 0.5) end
  end
  wrk.method = "POST"
  if #requests == 1 then
    -- Without a function `request` wrk formats the request once.
    wrk.path, wrk.body = requests[1].path, requests[1].body
    for name, value in pairs(requests[1].headers) do wrk.headers[name] = value end
    return
  end
  local formatted, next_one = {}, 0
  for i, each in ipairs(requests) do
    each.headers["Host"] = wrk.headers["Host"]
    formatted[i] = wrk.format("POST", each.path, each.headers, each.body)
  end
  function request()
    next_one = next_one % #formatted + 1
    return formatted[next_one]
  end
end

function done(summary, latency)
  local errors = summary.errors
  local count = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("result %d %d %d %d %d %d\n", summary.requests, summary.duration, count,
    summary.bytes, latency:percentile(50), latency:percentile(99)))
end
