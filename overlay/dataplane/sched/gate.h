/*
 * The gate control list of IEEE 802.1Q: which traffic class may send when.
 *
 * Arithmetic alone: no clock is read and nothing is allocated. Times are ns of
 * one clock, which the caller names; CLOCK_TAI as 802.1AS has it.
 */
#ifndef SCHED_GATE_H
#define SCHED_GATE_H

#include <stdbool.h>
#include <stdint.h>

#define GATE_CLASSES 8
#define GATE_ALL_OPEN 0xff
#define GATE_ENTRIES_MAX 256
#define GATE_CYCLE_MAX_NS INT64_C(10000000000)
#define GATE_NEVER INT64_MAX

/* A gate stays as it is for interval_ns: bit c of open is the gate of class c. */
struct gate_entry {
	uint32_t interval_ns;
	uint8_t open;
};

/*
 * A list in the words of 802.1Q §8.6.9.4. Intervals that exceed the cycle are cut
 * off; where they fall short of it, the last entry holds until the cycle ends. An
 * interval is at least GATE_INTERVAL_MIN_NS: no poll would hold a shorter one.
 */
struct gate_list {
	int64_t base_ns;      /* AdminBaseTime */
	int64_t cycle_ns;     /* AdminCycleTime */
	int64_t extension_ns; /* AdminCycleTimeExtension */
	int entries;          /* AdminControlListLength */
	struct gate_entry entry[GATE_ENTRIES_MAX];
};

#define GATE_BASE_MAX_NS (INT64_MAX / 4)
#define GATE_INTERVAL_MIN_NS 1000

/* The list in force and the one that follows it. */
struct gate {
	struct gate_list oper, admin;
	bool running;      /* before a first list all gates are open */
	bool pending;      /* ConfigPending */
	int64_t change_ns; /* ConfigChangeTime, while pending */
};

/* A span of time, its end not included. */
struct gate_window {
	int64_t start_ns, end_ns;
};

void gate_init(struct gate *g);

/* gate_check returns 0, or -EINVAL for a list that cannot run. */
int gate_check(const struct gate_list *list);

/*
 * gate_load has a list follow at its base time, or where that is past at the
 * first of its cycles that begins at now or later (§8.6.9.3.1). It takes the place
 * of one that is pending. Returns 0 or -EINVAL.
 */
int gate_load(struct gate *g, const struct gate_list *list, int64_t now_ns);

/* gate_tick puts the pending list in force once its time has come, and says so. */
bool gate_tick(struct gate *g, int64_t now_ns);

/* gate_states returns the gates at a time, as in struct gate_entry. */
uint8_t gate_states(const struct gate *g, int64_t at_ns);

/* gate_shut says whether a class's gate is shut at the beginning or at the end of what takes so long. */
bool gate_shut(const struct gate *g, int class, int64_t at_ns, int64_t lasts_ns);

/*
 * gate_window finds the first span of a class's open gate of which lasts_ns or more
 * are left at at_ns or later. Its start may lie before at_ns. Where there is none,
 * start_ns is GATE_NEVER. A window that is never seen to end is cut off some cycles
 * ahead; its end is GATE_NEVER only where no list runs or follows.
 */
struct gate_window gate_window(const struct gate *g, int class, int64_t at_ns, int64_t lasts_ns);

/*
 * gate_longest_ns returns the longest window that a class has by either list, once it
 * runs: where one follows the other there may be a longer one, once.
 */
int64_t gate_longest_ns(const struct gate *g, int class);

#endif
