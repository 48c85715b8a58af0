/* What the daemon counts of packets that its scheduler has leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../ktsnd/clock.h"
#include "../ktsnd/state.h"

#define CLASS 3

/* leave has the scheduler let a packet go that is due, as enqueue would have written it. */
static void leave(struct daemon *d)
{
	uint64_t before = sched_count(d->sched, CLASS, SCHED_SENT);
	int64_t now_ns = clock_ns(CLOCK_TAI);
	struct sched_packet p = { .class = CLASS, .txtime_ns = now_ns, .bytes = sched_wire_bytes(60) };

	p.handle = d->pool.unused[--d->pool.left];
	d->pool.origin[p.handle] = (struct origin){ .attachment = 0 };
	d->pool.bytes[p.handle] = 60;
	d->attachment[0].waiting++;
	assert_int_equal(sched_push(d->sched, p, now_ns, now_ns), SCHED_QUEUED);
	for (int i = 0; i < 1000000 && sched_count(d->sched, CLASS, SCHED_SENT) == before; i++) {
		daemon_poll(d);
	}
	assert_int_equal(sched_count(d->sched, CLASS, SCHED_SENT), before + 1);
}

static void what_leaves_while_its_gate_is_shut_is_counted(void **unused)
{
	const struct gate_list open = { .cycle_ns = 1000000, .entries = 1, .entry = { { 1000000, 1 << CLASS } } };
	char path[64];
	struct daemon_config config = {
		.control = path,
		.sched = { .strategy = &queue_earliest_txtime, .link_bps = 1000000000, .guard_ns = 1000, .horizon_ns = 1000000000,
			   .late_max_ns = INT64_C(10000000000), .packets = 4 },
	};
	const struct control_class *class;
	struct daemon *d;

	(void)unused;
	snprintf(path, sizeof(path), "/tmp/ktsn-daemon-test.%d", getpid());
	assert_int_equal(port_open(&config.port, "null"), 0);
	assert_int_equal(daemon_new(&d, &config), 0);
	class = &d->status.class[CLASS];
	assert_int_equal(sched_load(d->sched, &open, clock_ns(CLOCK_TAI)), 0);
	usleep(2000); /* until it runs */
	leave(d);
	assert_int_equal(class->misplaced + class->unexplained, 0);

	/* The scheduler is not told, and goes on by what it has looked up: as if that were wrong. */
	((struct gate *)sched_gate(d->sched))->oper.entry[0].open = 0;
	leave(d);
	assert_int_equal(class->misplaced, 1);
	assert_int_equal(class->unexplained, 1);
	daemon_free(d);
	port_close(config.port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_leaves_while_its_gate_is_shut_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
