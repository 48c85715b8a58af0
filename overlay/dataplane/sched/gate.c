#include "gate.h"

#include <errno.h>
#include <stddef.h>

/* A cycle of a list, from its start to where the next one starts. */
struct cycle {
	const struct gate_list *list; /* NULL before a first list: all gates are open */
	int64_t start_ns, end_ns;
};

/* A slot is a stretch of time in which no gate moves: an entry of a cycle. */
struct slot {
	struct cycle cycle;
	int index;
	int64_t start_ns, end_ns;
	uint8_t open;
};

void gate_init(struct gate *g)
{
	*g = (struct gate){ 0 };
}

int gate_check(const struct gate_list *list)
{
	if (list->base_ns < 0 || list->base_ns > GATE_BASE_MAX_NS) {
		return -EINVAL;
	}
	if (list->cycle_ns <= 0 || list->cycle_ns > GATE_CYCLE_MAX_NS) {
		return -EINVAL;
	}
	if (list->extension_ns < 0 || list->extension_ns > GATE_CYCLE_MAX_NS) {
		return -EINVAL;
	}
	if (list->entries < 1 || list->entries > GATE_ENTRIES_MAX) {
		return -EINVAL;
	}
	for (int i = 0; i < list->entries; i++) {
		if (list->entry[i].interval_ns < GATE_INTERVAL_MIN_NS) {
			return -EINVAL;
		}
	}
	return 0;
}

/* floor_to returns the last of base + n * step that is at or before at; n >= 0 or not. */
static int64_t floor_to(int64_t at, int64_t base, int64_t step)
{
	int64_t past = (at - base) % step;

	return at - (past < 0 ? past + step : past);
}

/* ceil_to returns the first of base + n * step that is at or after at. */
static int64_t ceil_to(int64_t at, int64_t base, int64_t step)
{
	return floor_to(at + step - 1, base, step);
}

int gate_load(struct gate *g, const struct gate_list *list, int64_t now_ns)
{
	int err = gate_check(list);

	if (err) {
		return err;
	}
	gate_tick(g, now_ns);
	g->admin = *list;
	g->pending = true;
	g->change_ns = list->base_ns;
	if (list->base_ns < now_ns) {
		g->change_ns = ceil_to(now_ns, list->base_ns, list->cycle_ns);
	}
	return 0;
}

bool gate_tick(struct gate *g, int64_t now_ns)
{
	if (!g->pending || now_ns < g->change_ns) {
		return false;
	}
	g->oper = g->admin;
	g->oper.base_ns = g->change_ns;
	g->running = true;
	g->pending = false;
	return true;
}

/*
 * cycle_at finds the cycle at a time. The last one before a change lasts until
 * that: it is cut off, or lengthened where the next one would be cut off to no more
 * than the extension (§8.6.9.1, SetCycleStartTime).
 */
static struct cycle cycle_at(const struct gate *g, int64_t at_ns)
{
	const struct gate_list *oper = &g->oper;
	struct cycle c = { .list = oper };
	int64_t last;

	if (g->pending && at_ns >= g->change_ns) {
		c.list = &g->admin;
		c.start_ns = floor_to(at_ns, g->change_ns, c.list->cycle_ns);
		c.end_ns = c.start_ns + c.list->cycle_ns;
		return c;
	}
	if (!g->running) {
		return (struct cycle){ NULL, INT64_MIN, g->pending ? g->change_ns : GATE_NEVER };
	}
	c.start_ns = floor_to(at_ns, oper->base_ns, oper->cycle_ns);
	c.end_ns = c.start_ns + oper->cycle_ns;
	if (!g->pending) {
		return c;
	}
	last = g->change_ns - oper->cycle_ns - oper->extension_ns;
	last = last < oper->base_ns ? oper->base_ns : ceil_to(last, oper->base_ns, oper->cycle_ns);
	if (c.start_ns >= last) {
		c.start_ns = last;
		c.end_ns = g->change_ns;
	}
	return c;
}

/* slot_of returns an entry of a cycle that starts at a time. */
static struct slot slot_of(struct cycle c, int index, int64_t start_ns)
{
	struct slot s = { c, index, start_ns, c.end_ns, GATE_ALL_OPEN };

	if (!c.list) {
		return s;
	}
	s.open = c.list->entry[index].open;
	if (index + 1 < c.list->entries && start_ns + c.list->entry[index].interval_ns < c.end_ns) {
		s.end_ns = start_ns + c.list->entry[index].interval_ns;
	}
	return s;
}

static struct slot slot_after(const struct gate *g, struct slot s)
{
	if (s.end_ns < s.cycle.end_ns) {
		return slot_of(s.cycle, s.index + 1, s.end_ns);
	}
	return slot_of(cycle_at(g, s.end_ns), 0, s.end_ns);
}

static struct slot slot_at(const struct gate *g, int64_t at_ns)
{
	struct cycle c = cycle_at(g, at_ns);
	struct slot s = slot_of(c, 0, c.start_ns);

	while (s.end_ns <= at_ns) {
		s = slot_after(g, s);
	}
	return s;
}

uint8_t gate_states(const struct gate *g, int64_t at_ns)
{
	return slot_at(g, at_ns).open;
}

bool gate_shut(const struct gate *g, int class, int64_t at_ns, int64_t lasts_ns)
{
	int64_t last_ns = lasts_ns > 0 ? at_ns + lasts_ns - 1 : at_ns;

	return !(gate_states(g, at_ns) & gate_states(g, last_ns) & 1 << class);
}

/* fits says whether a window is one, and so long after a time. */
static bool fits(struct gate_window w, int64_t at_ns, int64_t lasts_ns)
{
	int64_t from = w.start_ns > at_ns ? w.start_ns : at_ns;

	return w.start_ns != GATE_NEVER && w.end_ns - from >= lasts_ns;
}

/* Two cycles of each list, so that what is open over their ends is seen as one. */
#define SLOTS_MAX (4 * GATE_ENTRIES_MAX)

struct gate_window gate_window(const struct gate *g, int class, int64_t at_ns, int64_t lasts_ns)
{
	const struct gate_window none = { GATE_NEVER, GATE_NEVER };
	struct gate_window w = none;
	struct slot s = slot_at(g, at_ns);

	for (int i = 0; i < SLOTS_MAX; i++, s = slot_after(g, s)) {
		if (s.open >> class & 1) {
			w.start_ns = w.start_ns == GATE_NEVER ? s.start_ns : w.start_ns;
			w.end_ns = s.end_ns;
			if (s.end_ns == GATE_NEVER) {
				return w;
			}
		} else if (fits(w, at_ns, lasts_ns)) {
			return w;
		} else {
			w = none;
		}
	}
	return fits(w, at_ns, lasts_ns) ? w : none;
}

/* longest_in goes twice round a list, since a window may begin in one cycle and end in the next. */
static int64_t longest_in(const struct gate_list *list, int class)
{
	int64_t longest_ns = 0, open_ns = 0;

	for (int round = 0; round < 2; round++) {
		int64_t left_ns = list->cycle_ns;

		for (int i = 0; i < list->entries && left_ns > 0; i++) {
			bool last = i + 1 == list->entries;
			int64_t lasts_ns = list->entry[i].interval_ns;

			lasts_ns = last || lasts_ns > left_ns ? left_ns : lasts_ns;
			left_ns -= lasts_ns;
			open_ns = list->entry[i].open >> class & 1 ? open_ns + lasts_ns : 0;
			longest_ns = open_ns > longest_ns ? open_ns : longest_ns;
		}
	}
	return open_ns == 2 * list->cycle_ns ? GATE_NEVER : longest_ns;
}

int64_t gate_longest_ns(const struct gate *g, int class)
{
	int64_t longest_ns = g->running ? longest_in(&g->oper, class) : GATE_NEVER;

	if (g->pending) {
		int64_t next_ns = longest_in(&g->admin, class);

		longest_ns = next_ns > longest_ns ? next_ns : longest_ns;
	}
	return longest_ns;
}
