-- A closed loop of a number of requests, for wrk:
--   wrk ... -s wrk.lua URL -- METHOD REQUESTS THINK_MS [TYPE FILE]
-- It ends with one line: "skerry-total" and wrk's own figures as JSON.

local ffi = require("ffi")
ffi.cdef("int kill(int pid, int sig); int getpid(void);")
local SIGINT = 2

local wanted, answers = 0, 0

function init(args)
  wrk.method, wanted = args[1], tonumber(args[2])
  local think = tonumber(args[3])
  if think > 0 then
    delay = function() return think end
  end
  if args[4] then
    wrk.headers["Content-Type"] = args[4]
    local file = assert(io.open(args[5], "rb"))
    wrk.body = file:read("*a")
    file:close()
  end
end

-- The one thread stops with the last answer. wrk itself would sleep until the end
-- of its -d: an interrupt wakes it up.
function response()
  answers = answers + 1
  if answers == wanted then
    wrk.thread:stop()
    ffi.C.kill(ffi.C.getpid(), SIGINT)
  end
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    'skerry-total {"requests":%d,"duration_us":%d,"mean_us":%.3f,"p50_us":%d,"p90_us":%d,"p99_us":%d,"max_us":%d,' ..
      '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\n',
    summary.requests, summary.duration, latency.mean, latency:percentile(50), latency:percentile(90),
    latency:percentile(99), latency.max, e.connect, e.read, e.write, e.status, e.timeout))
end
