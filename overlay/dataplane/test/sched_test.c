/* Properties of the scheduler over random lists and packets; SEED has others. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../sched/sched.h"
#include "random.h"

#define ROUNDS 300
#define PACKETS 200
#define STEP_NS 1000

/* random_list has intervals of whole STEP_NS, so that a walk of such steps sees all. */
static struct gate_list random_list(int64_t base_ns)
{
	struct gate_list l = { .base_ns = base_ns };

	l.entries = 1 + (int)below(6);
	l.cycle_ns = STEP_NS * (1 + below(60));
	l.extension_ns = STEP_NS * below(20);
	for (int i = 0; i < l.entries; i++) {
		l.entry[i].interval_ns = (uint32_t)(STEP_NS * (1 + below(20)));
		l.entry[i].open = (uint8_t)below(256);
	}
	return l;
}

static void random_gate(struct gate *g)
{
	struct gate_list l = random_list(STEP_NS * below(50));

	gate_init(g);
	assert_int_equal(gate_load(g, &l, STEP_NS * below(100)), 0);
	gate_tick(g, STEP_NS * 1000);
	if (below(2)) {
		l = random_list(STEP_NS * (1000 + below(200)));
		assert_int_equal(gate_load(g, &l, STEP_NS * 1000), 0);
	}
}

/* open_for walks over an open gate: it returns how long it stays open, to 4 ms at most. */
static int64_t open_for(const struct gate *g, int class, int64_t at_ns)
{
	int64_t lasts_ns = 0;

	while (lasts_ns < 4000000 && gate_states(g, at_ns + lasts_ns) >> class & 1) {
		lasts_ns += STEP_NS;
	}
	return lasts_ns;
}

static void windows_are_the_first_with_room(void **unused)
{
	(void)unused;
	for (int round = 0; round < ROUNDS; round++) {
		struct gate g;
		int class = (int)below(GATE_CLASSES);
		int64_t at_ns = STEP_NS * (1000 + below(200)), need_ns = STEP_NS * (1 + below(30));
		struct gate_window w;
		int64_t from_ns;

		random_gate(&g);
		w = gate_window(&g, class, at_ns, need_ns);
		if (w.start_ns == GATE_NEVER) {
			from_ns = at_ns + 2000 * STEP_NS;
		} else {
			from_ns = w.start_ns > at_ns ? w.start_ns : at_ns;
			assert_true(open_for(&g, class, from_ns) >= need_ns);
			assert_true(open_for(&g, class, from_ns) == w.end_ns - from_ns || w.end_ns - from_ns > 60 * STEP_NS);
			assert_true(g.pending || gate_longest_ns(&g, class) >= need_ns);
		}
		for (int64_t t = at_ns; t < from_ns; t += STEP_NS) {
			assert_true(open_for(&g, class, t) < need_ns);
		}
	}
}

static void a_gate_is_shut_at_either_end(void **unused)
{
	(void)unused;
	for (int round = 0; round < ROUNDS; round++) {
		int class = (int)below(GATE_CLASSES);
		int64_t at_ns = STEP_NS * (1000 + below(200)), lasts_ns = STEP_NS * below(30);
		struct gate g;

		random_gate(&g);
		assert_int_equal(gate_shut(&g, class, at_ns, 0), !(gate_states(&g, at_ns) >> class & 1));
		if (open_for(&g, class, at_ns) >= lasts_ns && lasts_ns > 0) {
			assert_false(gate_shut(&g, class, at_ns, lasts_ns));
		}
		assert_int_equal(gate_shut(&g, class, at_ns, lasts_ns + 1), /* a ns of the next step */
				 !(gate_states(&g, at_ns) >> class & gate_states(&g, at_ns + lasts_ns) >> class & 1));
	}
}

struct seen {
	struct sched_packet packet[PACKETS];
	enum sched_fate fate[PACKETS];
	int64_t left_ns[PACKETS];
};

/* take pops all that leaves or is given up now, and says whether there was any. */
static bool take(struct sched *s, struct seen *seen, int64_t now_ns, int64_t guard_ns)
{
	struct sched_packet p;
	struct gate_window w;
	enum sched_fate fate;
	bool any = false;

	while ((fate = sched_pop(s, now_ns, &p, &w)) != SCHED_QUEUED) {
		any = true;
		seen->fate[p.handle] = fate;
		seen->left_ns[p.handle] = now_ns;
		if (fate == SCHED_SENT) {
			assert_true(w.start_ns <= now_ns);
			assert_true(now_ns + sched_wire_ns(s, p.bytes) + guard_ns <= w.end_ns);
			assert_true(gate_states(sched_gate(s), now_ns) >> p.class & 1);
		}
	}
	return any;
}

/* play has random packets come over 3 ms, and lists in the place of lists. */
static struct sched *play(struct seen *seen, const struct sched_config *config)
{
	struct sched *s = sched_new(config);
	int64_t wake_ns = GATE_NEVER, next_ns;
	uint32_t pushed = 0;

	assert_non_null(s);
	for (int64_t now_ns = 1; now_ns < 50000000; now_ns = next_ns) {
		bool taken = take(s, seen, now_ns, config->guard_ns);

		assert_true(now_ns < wake_ns ? !taken : taken || now_ns > wake_ns);
		if (below(100) == 0) {
			struct gate_list l = random_list(STEP_NS * (now_ns / STEP_NS + below(100)));

			assert_int_equal(sched_load(s, &l, now_ns), 0);
		}
		if (pushed < PACKETS && below(3) == 0) {
			struct sched_packet p = { .handle = pushed, .class = (uint8_t)below(GATE_CLASSES) };

			p.txtime_ns = now_ns - 1000 + below(100000);
			p.bytes = sched_wire_bytes((uint32_t)below(1500));
			seen->fate[pushed] = sched_push(s, p, now_ns, now_ns);
			seen->packet[pushed++] = p;
		}
		wake_ns = sched_wake_ns(s, now_ns);
		next_ns = now_ns + 1 + below(pushed < PACKETS ? 10000 : 100000);
		next_ns = next_ns > wake_ns && below(2) ? wake_ns : next_ns;
	}
	assert_int_equal(pushed, PACKETS);
	return s;
}

/* overtakes says whether b left before a although a was to leave first and waited. */
static bool overtakes(const struct seen *x, int a, int b)
{
	return x->packet[a].class == x->packet[b].class && x->fate[a] == SCHED_SENT &&
	       x->fate[b] == SCHED_SENT && x->left_ns[b] < x->left_ns[a] &&
	       x->packet[a].txtime_ns <= x->packet[b].txtime_ns && a < b;
}

static void every_packet_has_one_fate_in_its_window(void **unused)
{
	(void)unused;
	for (int round = 0; round < ROUNDS; round++) {
		const struct sched_config config = {
			.strategy = &queue_earliest_txtime, .link_bps = 1000000000, .guard_ns = below(5000),
			.horizon_ns = 90000, .late_max_ns = 20000000, .packets = PACKETS,
		};
		static struct seen seen;
		uint64_t by_fate[SCHED_FATES] = { 0 };
		struct sched *s = play(&seen, &config);

		for (int i = 0; i < PACKETS; i++) {
			by_fate[seen.fate[i]]++;
			assert_true(seen.fate[i] != SCHED_SENT || seen.left_ns[i] >= seen.packet[i].txtime_ns);
			for (int j = 0; j < PACKETS; j++) {
				assert_false(overtakes(&seen, i, j));
			}
		}
		assert_int_equal(by_fate[SCHED_QUEUED], 0);
		for (int fate = SCHED_SENT; fate < SCHED_FATES; fate++) {
			uint64_t counted = 0;

			for (int class = 0; class < GATE_CLASSES; class++) {
				counted += sched_count(s, class, (enum sched_fate)fate);
				assert_int_equal(sched_waiting(s, class), 0);
			}
			assert_int_equal(counted, by_fate[fate]);
		}
		sched_free(s);
	}
}

/* one is a packet of class 0 on the wire at a time. */
static struct sched_packet one(uint32_t handle, int64_t txtime_ns)
{
	return (struct sched_packet){ .handle = handle, .txtime_ns = txtime_ns, .bytes = sched_wire_bytes(1500) };
}

static void the_clock_may_be_set(void **unused)
{
	const int64_t hour_ns = INT64_C(3600000000000), then_ns = 2 * hour_ns, now_ns = hour_ns;
	const struct sched_config config = { .strategy = &queue_earliest_txtime, .link_bps = 1000000000, .horizon_ns = 1000000,
					     .late_max_ns = 1000000, .packets = 4 };
	struct sched *s = sched_new(&config);
	struct sched_packet got;
	struct gate_window w;

	(void)unused;
	assert_non_null(s);
	assert_int_equal(sched_push(s, one(1, then_ns), then_ns, then_ns), SCHED_QUEUED);
	assert_int_equal(sched_push(s, one(2, then_ns + 1), then_ns, then_ns), SCHED_QUEUED);
	assert_int_equal(sched_pop(s, then_ns, &got, &w), SCHED_SENT);
	assert_int_equal(sched_pop(s, then_ns, &got, &w), SCHED_QUEUED); /* the link is busy */

	/* It is set back by an hour: what waited is given up, and what comes leaves at once. */
	assert_int_equal(sched_wake_ns(s, now_ns), now_ns);
	assert_int_equal(sched_push(s, one(3, now_ns), now_ns, now_ns), SCHED_QUEUED);
	assert_int_equal(sched_pop(s, now_ns, &got, &w), SCHED_SENT);
	assert_int_equal(got.handle, 3);
	assert_int_equal(sched_wake_ns(s, now_ns), now_ns + sched_wire_ns(s, got.bytes));
	assert_int_equal(sched_pop(s, now_ns + 100000, &got, &w), SCHED_MISSED);
	assert_int_equal(got.handle, 2);

	/* It is set forward: what waits is too late. */
	assert_int_equal(sched_push(s, one(4, now_ns + 200000), now_ns + 100000, now_ns + 100000), SCHED_QUEUED);
	assert_int_equal(sched_pop(s, then_ns, &got, &w), SCHED_MISSED);
	assert_int_equal(got.handle, 4);
	assert_int_equal(sched_pop(s, then_ns, &got, &w), SCHED_QUEUED);
	sched_free(s);
}

static void lists_that_cannot_run_are_refused(void **unused)
{
	const struct gate_list good = { .cycle_ns = 1000, .entries = 1, .entry = { { 1000, 1 } } };
	struct gate_list l = good;
	struct gate g;

	(void)unused;
	gate_init(&g);
	assert_int_equal(gate_load(&g, &l, 0), 0);
	l.base_ns = -1;
	assert_int_equal(gate_load(&g, &l, 0), -EINVAL);
	l = good, l.cycle_ns = 0;
	assert_int_equal(gate_load(&g, &l, 0), -EINVAL);
	l = good, l.cycle_ns = GATE_CYCLE_MAX_NS + 1;
	assert_int_equal(gate_load(&g, &l, 0), -EINVAL);
	l = good, l.extension_ns = -1;
	assert_int_equal(gate_load(&g, &l, 0), -EINVAL);
	l = good, l.entries = 0;
	assert_int_equal(gate_load(&g, &l, 0), -EINVAL);
	l = good, l.entries = GATE_ENTRIES_MAX + 1;
	assert_int_equal(gate_load(&g, &l, 0), -EINVAL);
	l = good, l.entry[0].interval_ns = GATE_INTERVAL_MIN_NS - 1;
	assert_int_equal(gate_load(&g, &l, 0), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_that_cannot_run_are_refused),
		cmocka_unit_test(windows_are_the_first_with_room),
		cmocka_unit_test(a_gate_is_shut_at_either_end),
		cmocka_unit_test(every_packet_has_one_fate_in_its_window),
		cmocka_unit_test(the_clock_may_be_set),
	};

	random_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
