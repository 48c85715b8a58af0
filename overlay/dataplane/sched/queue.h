/*
 * A bounded queue of packets, the next to leave first: a binary heap, in the order
 * of a strategy. Memory is taken once.
 */
#ifndef SCHED_QUEUE_H
#define SCHED_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

/* A packet as the scheduler knows it; its bytes lie elsewhere, under handle. */
struct sched_packet {
	int64_t txtime_ns;
	uint64_t arrival; /* counts packets in the order in which they came */
	uint32_t handle;
	uint32_t bytes; /* on the wire, as sched_wire_bytes() has it */
	uint8_t class;
};

/* A strategy says which of two packets of a class leaves first. */
struct queue_strategy {
	const char *name;
	bool (*before)(const struct sched_packet *a, const struct sched_packet *b);
};

/* By transmission time, and of equal ones by arrival: what is called etf. */
extern const struct queue_strategy queue_earliest_txtime;
/* By arrival: a packet waits for its time and holds up those behind it. */
extern const struct queue_strategy queue_fifo;

/* queue_strategy_of finds one by its name, or returns NULL. */
const struct queue_strategy *queue_strategy_of(const char *name);

struct queue {
	const struct queue_strategy *strategy;
	struct sched_packet *packet;
	uint32_t used, size;
};

/* queue_init returns 0 or -ENOMEM; queue_fini gives the memory back. */
int queue_init(struct queue *q, const struct queue_strategy *strategy, uint32_t size);
void queue_fini(struct queue *q);

/* queue_push returns false when the queue is full. */
bool queue_push(struct queue *q, const struct sched_packet *p);

/* queue_first returns the packet that is to leave next, or NULL. */
static inline const struct sched_packet *queue_first(const struct queue *q)
{
	return q->used > 0 ? q->packet : 0;
}

/* queue_pop takes that packet out; the queue holds one. */
struct sched_packet queue_pop(struct queue *q);

#endif
