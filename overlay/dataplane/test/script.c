/*
 * Runs the scheduler by a script on stdin and prints what comes of it: the tests of
 * whole conversations, and what is held beside the kernel's own qdiscs.
 *
 *   config [link=BPS] [guard=NS] [horizon=NS] [grace=NS] [late=NS] [packets=N] [fifo=1]
 *   list BASE CYCLE EXTENSION OPEN:NS...     OPEN is hexadecimal, bit c for class c
 *   push NAME CLASS TXTIME BYTES             a frame of so many bytes
 *   until TIME                               lets time pass, from event to event
 *   gates TIME                               the gates at a time
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sched/sched.h"

#define PACKETS_MAX 4096
#define NAME_MAX_BYTES 32

static const char *const fates[SCHED_FATES] = {
	"queued", "sent", "late", "early", "oversize", "full", "missed",
};

struct script {
	struct sched *sched;
	int64_t now_ns;
	uint32_t packets;
	char name[PACKETS_MAX][NAME_MAX_BYTES];
};

static void fail(const char *line)
{
	fprintf(stderr, "script: error: cannot read %s", line);
	exit(2);
}

static void config(struct script *x, char *line)
{
	struct sched_config c = {
		.strategy = &queue_earliest_txtime,
		.link_bps = 1000000000,
		.horizon_ns = 1000000000,
		.late_max_ns = 1000000000,
		.packets = PACKETS_MAX,
	};
	char *save = NULL;

	strtok_r(line, " \n", &save);
	for (char *word; (word = strtok_r(NULL, " \n", &save));) {
		char key[16];
		int64_t value;

		if (sscanf(word, "%15[a-z]=%" SCNd64, key, &value) != 2) {
			fail(word);
		} else if (strcmp(key, "link") == 0) {
			c.link_bps = value;
		} else if (strcmp(key, "guard") == 0) {
			c.guard_ns = value;
		} else if (strcmp(key, "horizon") == 0) {
			c.horizon_ns = value;
		} else if (strcmp(key, "grace") == 0) {
			c.grace_ns = value;
		} else if (strcmp(key, "late") == 0) {
			c.late_max_ns = value;
		} else if (strcmp(key, "packets") == 0) {
			c.packets = (uint32_t)value;
		} else if (strcmp(key, "fifo") == 0) {
			c.strategy = &queue_fifo;
		} else {
			fail(word);
		}
	}
	sched_free(x->sched);
	x->sched = sched_new(&c);
}

static void list(struct script *x, char *line)
{
	struct gate_list l = { 0 };
	char *save = NULL;
	int used = 0, err;

	if (sscanf(line, "list %" SCNd64 " %" SCNd64 " %" SCNd64 "%n", &l.base_ns, &l.cycle_ns,
		   &l.extension_ns, &used) != 3) {
		fail(line);
	}
	for (char *word = strtok_r(line + used, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		unsigned int open;

		if (l.entries == GATE_ENTRIES_MAX ||
		    sscanf(word, "%x:%" SCNu32, &open, &l.entry[l.entries].interval_ns) != 2) {
			fail(word);
		}
		l.entry[l.entries++].open = (uint8_t)open;
	}
	err = sched_load(x->sched, &l, x->now_ns);
	if (err) {
		printf("%" PRId64 " list refused: %s\n", x->now_ns, strerror(-err));
	} else {
		printf("%" PRId64 " list from %" PRId64 "\n", x->now_ns, sched_gate(x->sched)->change_ns);
	}
}

static void push(struct script *x, char *line)
{
	struct sched_packet p = { .handle = x->packets };
	char *name = x->name[x->packets];
	unsigned int class, bytes;
	enum sched_fate fate;

	if (x->packets == PACKETS_MAX ||
	    sscanf(line, "push %31s %u %" SCNd64 " %u", name, &class, &p.txtime_ns, &bytes) != 4 ||
	    class >= GATE_CLASSES) {
		fail(line);
	}
	x->packets++;
	p.class = (uint8_t)class;
	p.bytes = sched_wire_bytes(bytes);
	fate = sched_push(x->sched, p, x->now_ns, x->now_ns);
	if (fate != SCHED_QUEUED) {
		printf("%" PRId64 " %s %s\n", x->now_ns, name, fates[fate]);
	}
}

/* drain takes out all that leaves or is given up now. */
static void drain(struct script *x)
{
	struct sched_packet p;
	struct gate_window w;
	enum sched_fate fate;

	while ((fate = sched_pop(x->sched, x->now_ns, &p, &w)) != SCHED_QUEUED) {
		printf("%" PRId64 " %s %s\n", x->now_ns, x->name[p.handle], fates[fate]);
	}
}

static void until(struct script *x, char *line)
{
	int64_t end_ns, next_ns;

	if (sscanf(line, "until %" SCNd64, &end_ns) != 1) {
		fail(line);
	}
	for (drain(x); (next_ns = sched_wake_ns(x->sched, x->now_ns)) <= end_ns; drain(x)) {
		x->now_ns = next_ns > x->now_ns ? next_ns : x->now_ns + 1;
	}
	x->now_ns = end_ns;
}

static void gates(struct script *x, char *line)
{
	int64_t at_ns;

	if (sscanf(line, "gates %" SCNd64, &at_ns) != 1) {
		fail(line);
	}
	printf("%" PRId64 " gates %02x\n", at_ns, gate_states(sched_gate(x->sched), at_ns));
}

int main(void)
{
	static const struct {
		const char *word;
		void (*run)(struct script *, char *);
	} verbs[] = {
		{ "config", config }, { "list ", list }, { "push ", push }, { "until ", until }, { "gates ", gates },
	};
	static struct script x;
	static char line[1 << 14];
	char begin[] = "config";

	config(&x, begin);
	while (fgets(line, sizeof(line), stdin)) {
		size_t verb = 0, count = sizeof(verbs) / sizeof(*verbs);

		if (line[0] == '#' || line[0] == '\n') {
			continue;
		}
		while (verb < count && strncmp(line, verbs[verb].word, strlen(verbs[verb].word)) != 0) {
			verb++;
		}
		if (verb == count) {
			fail(line);
		}
		verbs[verb].run(&x, line);
	}
	sched_free(x.sched);
	return 0;
}
