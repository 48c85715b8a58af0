#include "queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool by_arrival(const struct sched_packet *a, const struct sched_packet *b)
{
	return a->arrival < b->arrival;
}

static bool by_txtime(const struct sched_packet *a, const struct sched_packet *b)
{
	return a->txtime_ns == b->txtime_ns ? by_arrival(a, b) : a->txtime_ns < b->txtime_ns;
}

const struct queue_strategy queue_earliest_txtime = { "etf", by_txtime };
const struct queue_strategy queue_fifo = { "fifo", by_arrival };

const struct queue_strategy *queue_strategy_of(const char *name)
{
	static const struct queue_strategy *const all[] = { &queue_earliest_txtime, &queue_fifo };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (strcmp(all[i]->name, name) == 0) {
			return all[i];
		}
	}
	return NULL;
}

int queue_init(struct queue *q, const struct queue_strategy *strategy, uint32_t size)
{
	*q = (struct queue){ .strategy = strategy, .size = size };
	q->packet = calloc(size, sizeof(*q->packet));
	return q->packet ? 0 : -ENOMEM;
}

void queue_fini(struct queue *q)
{
	free(q->packet);
	*q = (struct queue){ 0 };
}

bool queue_push(struct queue *q, const struct sched_packet *p)
{
	uint32_t at = q->used;

	if (q->used == q->size) {
		return false;
	}
	q->used++;
	while (at > 0) {
		uint32_t parent = (at - 1) / 2;

		if (!q->strategy->before(p, &q->packet[parent])) {
			break;
		}
		q->packet[at] = q->packet[parent];
		at = parent;
	}
	q->packet[at] = *p;
	return true;
}

struct sched_packet queue_pop(struct queue *q)
{
	struct sched_packet first = q->packet[0];
	struct sched_packet moved = q->packet[--q->used];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= q->used) {
			break;
		}
		if (child + 1 < q->used && q->strategy->before(&q->packet[child + 1], &q->packet[child])) {
			child++;
		}
		if (!q->strategy->before(&q->packet[child], &moved)) {
			break;
		}
		q->packet[at] = q->packet[child];
		at = child;
	}
	q->packet[at] = moved;
	return first;
}
