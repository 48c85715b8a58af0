/*
 * What ktsnd is told and asked on its control socket (SOCK_SEQPACKET): a request is one
 * struct control_request, the answer one struct control_answer. docs/wire-ktsn.md tells
 * it in words; overlay/control is the Go half.
 */
#ifndef WIRE_CONTROL_H
#define WIRE_CONTROL_H

#include <assert.h>
#include <stdint.h>

#define CONTROL_VERSION 2
#define CONTROL_PATH "/run/ktsn/control.sock"
#define CONTROL_ADDRESSES_MAX 8
#define CONTROL_ENTRIES_MAX 256
#define CONTROL_CLASSES 8
#define CONTROL_FATES 7
#define CONTROL_BUCKETS 448

enum control_type {
	/*
	 * Have processes connect at a path, and send as who they are. Passed along may be a packet
	 * socket at their interface, by which ARP and neighbour discovery come and are answered.
	 */
	CONTROL_ATTACH = 1,
	CONTROL_DETACH,     /* end that */
	CONTROL_ROUTE,      /* where an address is; a MAC of six zeros: nowhere any more */
	CONTROL_SCHEDULE,   /* a gate control list follows */
	CONTROL_STATUS,     /* tell what there is and was */
};

struct control_attach {
	char name[64];
	char path[104];
	uint8_t mac[6]; /* zeros: the port's own */
	uint16_t addresses;
	uint8_t address[CONTROL_ADDRESSES_MAX][16]; /* IPv6, or IPv4 mapped into it */
};

/* Zeros as node: it is reached without a tunnel. Addresses as in struct control_attach. */
struct control_route {
	uint8_t address[16], node[16];
	uint8_t mac[6], node_mac[6];
};

struct control_entry {
	uint32_t interval_ns;
	uint32_t open; /* bit c: the gate of class c */
};

struct control_schedule {
	int64_t base_ns, cycle_ns, extension_ns;
	uint32_t entries, zero;
	struct control_entry entry[CONTROL_ENTRIES_MAX];
};

struct control_request {
	uint32_t version, type;
	union {
		struct control_attach attach; /* CONTROL_DETACH reads its name alone */
		struct control_route route;
		struct control_schedule schedule;
	};
};

static_assert(sizeof(struct control_request) == 8 + 32 + 8 * CONTROL_ENTRIES_MAX, "shared with Go");

/*
 * A histogram of ns: bucket i < 16 holds i itself, from there each power of two has 16
 * buckets, and the last holds what is longer (about 2^31).
 */
struct control_histogram {
	uint64_t count[CONTROL_BUCKETS];
	int64_t max_ns;
};

struct control_class {
	uint64_t fate[CONTROL_FATES]; /* by enum sched_fate */
	uint64_t waiting;
	uint64_t misplaced;   /* left outside of its window */
	uint64_t unexplained; /* of those, where no delay of the guard band or more is to blame */
};

struct control_status {
	int64_t now_ns, started_ns; /* CLOCK_TAI */
	int64_t change_ns;          /* when the list that is pending follows; 0: none is */
	uint32_t clients, sockets;
	uint64_t malformed; /* packets refused for what they say of themselves */
	uint64_t unrouted;  /* packets to an address without a route */
	uint64_t overrun;   /* packets that the port did not take */
	struct control_class class[CONTROL_CLASSES];
	struct control_histogram late; /* from when a packet may leave until it was handed to the port */
	struct control_histogram gap;  /* from one poll to the next, without naps */
};

struct control_answer {
	uint32_t version;
	int32_t error; /* 0 or a negative errno */
	char reason[112]; /* of the error, for people */
	struct control_status status;
};

static_assert(sizeof(struct control_class) == 80, "shared with Go");
static_assert(sizeof(struct control_answer) == 120 + 24 + 8 + 24 + 8 * 80 + 2 * (8 * CONTROL_BUCKETS + 8), "shared with Go");

#endif
