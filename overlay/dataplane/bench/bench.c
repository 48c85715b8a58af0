/*
 * Benchmarks of the data plane's parts, each a command; results are JSON on stdout. They
 * say what the machine does now: compare what was run by turns.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../frame/frame.h"
#include "../ktsnd/clock.h"
#include "../ktsnd/histogram.h"
#include "../port/port.h"
#include "../sched/sched.h"
#include "bare_xdp.h"

#define PAYLOAD 64
#define CYCLE_NS 1000000

static const struct frame_path path = {
	.from = { { 2, 0, 0, 0, 0, 1 }, { [10] = 0xff, 0xff, 10, 0, 0, 1 }, 7000 },
	.to = { { 2, 0, 0, 0, 0, 2 }, { [10] = 0xff, 0xff, 10, 0, 0, 2 }, 7000 },
};

static int fail(const char *what, int err)
{
	fprintf(stderr, "ktsn-bench: error: %s: %s\n", what, strerror(-err));
	return 1;
}

static int per_second(const char *what, uint64_t packets, int64_t took_ns)
{
	printf("{\"bench\":\"%s\",\"packets\":%" PRIu64 ",\"ns\":%" PRId64 ",\"per_second\":%.0f}\n", what, packets, took_ns,
	       (double)packets * 1e9 / (double)took_ns);
	return 0;
}

/* Three windows, in which all classes have their turn. */
static int windows(struct sched *s)
{
	struct gate_list list = {
		.cycle_ns = CYCLE_NS,
		.entries = 3,
		.entry = { { 300000, 0xc0 }, { 200000, 0x38 }, { 500000, 0x07 } },
	};

	return sched_load(s, &list, 0);
}

/*
 * run_sched has packets of all classes written, queued, and sent to a port that drops
 * them, up to waiting of them at a time, with a clock of its own that goes on by 200 ns a
 * packet: as the daemon does, without its rings.
 */
static int run_sched(uint64_t packets, uint32_t waiting)
{
	const struct sched_config config = {
		.strategy = &queue_earliest_txtime, .link_bps = INT64_C(1000000000000), .guard_ns = 5000,
		.horizon_ns = INT64_C(10000000000), .late_max_ns = INT64_C(1000000000), .packets = waiting,
	};
	static uint8_t frame[FRAME_HEADERS_MAX + PAYLOAD], payload[PAYLOAD];
	struct sched *s = sched_new(&config);
	struct port *port;
	struct sched_packet p;
	struct gate_window w;
	int64_t now_ns = 0, started_ns;
	uint64_t sent = 0, state = 1;
	int err = port_open(&port, "null");

	if (err || !s || windows(s)) {
		return fail("set up", err ? err : -ENOMEM);
	}
	started_ns = clock_ns(CLOCK_MONOTONIC);
	while (sent < packets) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
		p = (struct sched_packet){ .txtime_ns = now_ns + (int64_t)(state >> 46), .class = state >> 33 & 7 };
		p.bytes = sched_wire_bytes(frame_write(frame, &path, payload, PAYLOAD));
		sched_push(s, p, now_ns, now_ns);
		now_ns += 200;
		while (sched_pop(s, now_ns, &p, &w) == SCHED_SENT) {
			port_send(port, frame, p.bytes - 24);
			sent++;
		}
	}
	per_second("sched", sent, clock_ns(CLOCK_MONOTONIC) - started_ns);
	sched_free(s);
	port_close(port);
	return 0;
}

/* run_port sends frames by a port, so many before each flush. */
static int run_port(const char *spec, uint64_t packets, uint32_t batch)
{
	static uint8_t frame[FRAME_HEADERS_MAX + PAYLOAD], payload[PAYLOAD];
	uint32_t bytes = frame_write(frame, &path, payload, PAYLOAD);
	struct port *port;
	int64_t started_ns;
	uint64_t sent = 0;
	int err = port_open(&port, spec);

	if (err) {
		return fail(spec, err);
	}
	started_ns = clock_ns(CLOCK_MONOTONIC);
	while (sent < packets) {
		for (uint32_t i = 0; i < batch; i++) {
			sent += port_send(port, frame, bytes) == 0;
		}
		port_flush(port);
	}
	per_second(spec, sent, clock_ns(CLOCK_MONOTONIC) - started_ns);
	port_close(port);
	return 0;
}

/*
 * run_floor does what a daemon at best can: it polls, and writes down how long after each
 * moment it saw that this had come, and the gaps between polls.
 */
static int run_floor(uint64_t moments, int64_t cycle_ns)
{
	static struct control_histogram late, gap;
	static const int32_t none_us;
	int awake = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
	int64_t last_ns = clock_ns(CLOCK_TAI), due_ns = last_ns + cycle_ns;

	if (awake >= 0 && write(awake, &none_us, sizeof(none_us)) < 0) {
		close(awake);
	}
	while (moments > 0) {
		int64_t now_ns = clock_ns(CLOCK_TAI);

		histogram_add(&gap, now_ns - last_ns);
		last_ns = now_ns;
		if (now_ns >= due_ns) {
			histogram_add(&late, now_ns - due_ns);
			due_ns += cycle_ns;
			moments--;
		}
	}
	printf("{\"bench\":\"floor\",\"late\":{\"p50_ns\":%" PRId64 ",\"p99_ns\":%" PRId64 ",\"max_ns\":%" PRId64 "},"
	       "\"gap\":{\"p50_ns\":%" PRId64 ",\"p99_ns\":%" PRId64 ",\"max_ns\":%" PRId64 "}}\n",
	       histogram_quantile(&late, 0.5), histogram_quantile(&late, 0.99), late.max_ns,
	       histogram_quantile(&gap, 0.5), histogram_quantile(&gap, 0.99), gap.max_ns);
	return 0;
}

static int usage(FILE *to)
{
	fprintf(to, "Usage: ktsn-bench sched PACKETS WAITING      scheduler and null port\n"
		    "       ktsn-bench port PORT PACKETS BATCH    a port, flushed after each BATCH\n"
		    "       ktsn-bench bare INTERFACE PACKETS BATCH  AF_XDP without the port's code\n"
		    "       ktsn-bench floor MOMENTS CYCLE_NS     how late polling alone is\n");
	return to == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	bool port = strcmp(what, "port") == 0, bare = strcmp(what, "bare") == 0;
	int first = port || bare ? 3 : 2;
	uint64_t many, other;

	if (strcmp(what, "--help") == 0) {
		return usage(stdout);
	}
	if (argc != first + 2) {
		return usage(stderr);
	}
	many = strtoull(argv[first], NULL, 10);
	other = strtoull(argv[first + 1], NULL, 10);
	if (!many || !other || other > UINT32_MAX) {
		return usage(stderr);
	}
	if (port) {
		return run_port(argv[2], many, (uint32_t)other);
	}
	if (bare) {
		int64_t took_ns = bare_xdp(argv[2], many, (uint32_t)other);

		return took_ns < 0 ? fail(argv[2], (int)took_ns) : per_second("bare", many, took_ns);
	}
	if (strcmp(what, "sched") == 0) {
		return run_sched(many, (uint32_t)other);
	}
	return strcmp(what, "floor") == 0 ? run_floor(many, (int64_t)other) : usage(stderr);
}
