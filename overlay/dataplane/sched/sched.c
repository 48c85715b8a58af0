#include "sched.h"

#include <stdlib.h>

/* A class's queue, and what is known of its gate. */
struct lane {
	struct queue queue;
	struct gate_window window; /* the last that was looked up: the first one */
	int64_t asked_at_ns;       /* that at this time or later */
	int64_t asked_for_ns;      /* has so much room */
	int64_t longest_ns;        /* of its windows */
	uint64_t count[SCHED_FATES];
};

struct sched {
	struct sched_config config;
	struct gate gate;
	int64_t link_from_ns, link_free_ns; /* in between the link sends what it was given */
	uint64_t arrivals;
	struct lane lane[GATE_CLASSES];
};

/* look has what is known of gates looked up anew. */
static void look(struct sched *s)
{
	for (int class = 0; class < GATE_CLASSES; class++) {
		s->lane[class].window = (struct gate_window){ 0, 0 };
		s->lane[class].longest_ns = gate_longest_ns(&s->gate, class);
	}
}

struct sched *sched_new(const struct sched_config *config)
{
	struct sched *s = calloc(1, sizeof(*s));

	if (!s) {
		return NULL;
	}
	s->config = *config;
	gate_init(&s->gate);
	look(s);
	for (int class = 0; class < GATE_CLASSES; class++) {
		if (queue_init(&s->lane[class].queue, config->strategy, config->packets)) {
			sched_free(s);
			return NULL;
		}
	}
	return s;
}

void sched_free(struct sched *s)
{
	if (!s) {
		return;
	}
	for (int class = 0; class < GATE_CLASSES; class++) {
		queue_fini(&s->lane[class].queue);
	}
	free(s);
}

int sched_load(struct sched *s, const struct gate_list *list, int64_t now_ns)
{
	int err = gate_load(&s->gate, list, now_ns);

	if (!err) {
		look(s);
	}
	return err;
}

int64_t sched_wire_ns(const struct sched *s, uint32_t bytes)
{
	if (s->config.link_bps == 0) {
		return 0;
	}
	return ((int64_t)bytes * 8 * 1000000000 + s->config.link_bps - 1) / s->config.link_bps;
}

/* needs returns the room in a window that a packet wants: its frame and the guard band. */
static int64_t needs(const struct sched *s, const struct sched_packet *p)
{
	return sched_wire_ns(s, p->bytes) + s->config.guard_ns;
}

/* later returns the later of two times. */
static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* link_free returns when the link has sent what it was given. It was given nothing later than now: then the clock was set back. */
static int64_t link_free(const struct sched *s, int64_t now_ns)
{
	return s->link_from_ns <= now_ns ? s->link_free_ns : now_ns;
}

/* hopeless says whether a packet is given up: it is too late, or further ahead than any may be, since the clock was set back. */
static bool hopeless(const struct sched *s, const struct sched_packet *p, int64_t now_ns)
{
	return now_ns - p->txtime_ns > s->config.late_max_ns || p->txtime_ns - now_ns > s->config.horizon_ns;
}

/* has_room says whether a window, if there is one, has so much room at a time or later. */
static bool has_room(struct gate_window w, int64_t at_ns, int64_t need_ns)
{
	return w.start_ns == GATE_NEVER || w.end_ns - later(w.start_ns, at_ns) >= need_ns;
}

/*
 * window_for returns the first window of a packet's class that has room for it at a time
 * or later. The last one looked up is that when the time lies in it, or when it was the
 * first for a time no later and a packet no longer.
 */
static struct gate_window window_for(struct sched *s, const struct sched_packet *p, int64_t at_ns)
{
	struct lane *l = &s->lane[p->class];
	int64_t need_ns = needs(s, p);
	bool first = l->window.start_ns <= at_ns ||
		     (l->asked_at_ns <= at_ns && l->asked_for_ns <= need_ns);

	if (!first || !has_room(l->window, at_ns, need_ns)) {
		l->window = gate_window(&s->gate, p->class, at_ns, need_ns);
		l->asked_at_ns = at_ns;
		l->asked_for_ns = need_ns;
	}
	return l->window;
}

static enum sched_fate count(struct sched *s, const struct sched_packet *p, enum sched_fate fate)
{
	s->lane[p->class].count[fate]++;
	return fate;
}

enum sched_fate sched_push(struct sched *s, struct sched_packet p, int64_t since_ns, int64_t now_ns)
{
	if (p.txtime_ns < since_ns - s->config.grace_ns) {
		return count(s, &p, SCHED_LATE);
	}
	if (p.txtime_ns > now_ns + s->config.horizon_ns) {
		return count(s, &p, SCHED_EARLY);
	}
	if (needs(s, &p) > s->lane[p.class].longest_ns) {
		return count(s, &p, SCHED_OVERSIZE);
	}
	p.arrival = s->arrivals++;
	return count(s, &p, queue_push(&s->lane[p.class].queue, &p) ? SCHED_QUEUED : SCHED_FULL);
}

enum sched_fate sched_pop(struct sched *s, int64_t now_ns, struct sched_packet *p,
			  struct gate_window *window)
{
	if (gate_tick(&s->gate, now_ns)) {
		look(s);
	}
	if (now_ns < link_free(s, now_ns)) {
		return SCHED_QUEUED;
	}
	for (int class = GATE_CLASSES - 1; class >= 0; class--) {
		struct queue *q = &s->lane[class].queue;
		const struct sched_packet *first = queue_first(q);

		if (!first) {
			continue;
		}
		if (hopeless(s, first, now_ns)) {
			*p = queue_pop(q);
			return count(s, p, SCHED_MISSED);
		}
		if (first->txtime_ns > now_ns) {
			continue;
		}
		*window = window_for(s, first, now_ns);
		if (window->start_ns > now_ns) {
			continue;
		}
		*p = queue_pop(q);
		s->link_from_ns = now_ns;
		s->link_free_ns = now_ns + sched_wire_ns(s, p->bytes);
		return count(s, p, SCHED_SENT);
	}
	return SCHED_QUEUED;
}

/* wake_for returns when a packet that is the first of its class next has something become of it. */
static int64_t wake_for(struct sched *s, const struct sched_packet *p, int64_t now_ns)
{
	int64_t free_ns = later(link_free(s, now_ns), now_ns), due_ns, missed_ns;

	if (hopeless(s, p, now_ns)) {
		return free_ns;
	}
	due_ns = later(p->txtime_ns, free_ns);
	due_ns = later(due_ns, window_for(s, p, due_ns).start_ns);
	missed_ns = later(p->txtime_ns + s->config.late_max_ns + 1, free_ns);
	return due_ns < missed_ns ? due_ns : missed_ns;
}

int64_t sched_wake_ns(struct sched *s, int64_t now_ns)
{
	int64_t wake_ns = GATE_NEVER;

	for (int class = 0; class < GATE_CLASSES; class++) {
		const struct sched_packet *first = queue_first(&s->lane[class].queue);
		int64_t due_ns = first ? wake_for(s, first, now_ns) : GATE_NEVER;

		wake_ns = due_ns < wake_ns ? due_ns : wake_ns;
	}
	return wake_ns;
}

uint64_t sched_count(const struct sched *s, int class, enum sched_fate fate)
{
	return s->lane[class].count[fate];
}

uint32_t sched_waiting(const struct sched *s, int class)
{
	return s->lane[class].queue.used;
}

const struct gate *sched_gate(const struct sched *s)
{
	return &s->gate;
}
