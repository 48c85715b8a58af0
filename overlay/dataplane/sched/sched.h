/*
 * The packet scheduler: IEEE 802.1Q's gates in front of a queue for each traffic
 * class, in which the earliest transmission time leaves first.
 *
 * A packet: sched_push, which refuses what can never leave in time → its class's
 * queue → sched_pop, at its transmission time or when its gate next has room for
 * the whole of it, the highest class first (802.1Q §8.6.8.1, strict priority).
 *
 * The clock may be set. What waits keeps its time, which may be past then, or so far
 * ahead that it is given up; nothing waits for a link that was busy by the old time.
 *
 * Pure: the time is passed in, nothing is sent, and after sched_new nothing is
 * allocated. One thread uses a scheduler.
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "gate.h"
#include "queue.h"

struct sched;

struct sched_config {
	const struct queue_strategy *strategy;
	int64_t link_bps;    /* of the port; 0: a frame takes no time */
	int64_t guard_ns;    /* nothing begins that would end this close to a window's end */
	int64_t horizon_ns;  /* a transmission time further ahead is refused */
	int64_t grace_ns;    /* one that is past by more is refused, too */
	int64_t late_max_ns; /* how long after its time a packet may still leave */
	uint32_t packets;    /* that a class's queue holds */
};

/* What becomes of a packet; each is counted for its class. */
enum sched_fate {
	SCHED_QUEUED,   /* it waits */
	SCHED_SENT,     /* it leaves now */
	SCHED_LATE,     /* refused: its time was past by more than grace_ns when it came */
	SCHED_EARLY,    /* refused: its time lies beyond the horizon */
	SCHED_OVERSIZE, /* refused: no window of its class has room for it */
	SCHED_FULL,     /* refused: its class's queue is full */
	SCHED_MISSED,   /* given up: no window came within late_max_ns, or the clock was set back to before the horizon */
	SCHED_FATES,
};

/* sched_new returns NULL without memory; the config has been checked by the caller. */
struct sched *sched_new(const struct sched_config *config);
void sched_free(struct sched *s);

/* sched_load has a gate control list follow, as gate_load does. */
int sched_load(struct sched *s, const struct gate_list *list, int64_t now_ns);

/*
 * sched_push returns SCHED_QUEUED, or why the packet is refused. At since_ns it had not
 * come yet: only what was past then already is late, and not what came since and was not
 * looked for.
 */
enum sched_fate sched_push(struct sched *s, struct sched_packet p, int64_t since_ns, int64_t now_ns);

/*
 * sched_pop takes out a packet that leaves now, SCHED_SENT, or that is given up,
 * SCHED_MISSED; it returns SCHED_QUEUED when there is neither. window is where a
 * packet that leaves may be on the wire.
 */
enum sched_fate sched_pop(struct sched *s, int64_t now_ns, struct sched_packet *p,
			  struct gate_window *window);

/* sched_wake_ns returns when sched_pop next has something to do: GATE_NEVER if never. */
int64_t sched_wake_ns(struct sched *s, int64_t now_ns);

/* sched_count returns how many packets of a class had a fate, of those queued since ever. */
uint64_t sched_count(const struct sched *s, int class, enum sched_fate fate);

/* sched_waiting returns how many packets of a class wait. */
uint32_t sched_waiting(const struct sched *s, int class);

const struct gate *sched_gate(const struct sched *s);

/* sched_wire_ns returns how long so many bytes take on the link. */
int64_t sched_wire_ns(const struct sched *s, uint32_t bytes);

/*
 * sched_wire_bytes returns what an Ethernet frame, without its check sequence, takes of
 * the wire: at least 60 bytes, and 24 of preamble, check sequence and gap (802.3 §4.2.7).
 */
static inline uint32_t sched_wire_bytes(uint32_t frame)
{
	return (frame < 60 ? 60 : frame) + 24;
}

#endif
