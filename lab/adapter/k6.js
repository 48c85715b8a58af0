// One cell for k6. Its load is in the environment: TARGET METHOD TYPE BODY THREADS
// ITERATIONS THINK RAMP CONNECTION TIMEOUT, and for an open loop RATE DURATION.
// Times are in seconds.
import http from 'k6/http';
import { sleep } from 'k6';

const e = __ENV;
const threads = Number(e.THREADS);
const iterations = Number(e.ITERATIONS);
const think = Number(e.THINK);
const ramp = Number(e.RAMP);
const body = e.BODY ? open(e.BODY, 'b') : null;
const params = { timeout: `${e.TIMEOUT}s`, redirects: 0, headers: body ? { 'Content-Type': e.TYPE } : {} };

const closed = { executor: 'per-vu-iterations', vus: threads, iterations, maxDuration: '24h' };
const open_ = {
  executor: 'constant-arrival-rate',
  // k6 takes whole numbers alone.
  rate: Math.round(Number(e.RATE) * 1000),
  timeUnit: '1000s',
  duration: `${e.DURATION}s`,
  preAllocatedVUs: threads,
  maxVUs: threads,
  gracefulStop: `${e.TIMEOUT}s`,
};

export const options = {
  scenarios: { load: e.RATE ? open_ : closed },
  discardResponseBodies: true,
  noConnectionReuse: e.CONNECTION === 'new',
  systemTags: ['status', 'error_code', 'vu', 'iter'],
};

export default function () {
  if (ramp > 0 && __ITER === 0) {
    sleep((ramp * (__VU - 1)) / threads);
  }
  http.request(e.METHOD, e.TARGET, body, params);
  if (think > 0 && __ITER < iterations - 1) {
    sleep(think);
  }
}
