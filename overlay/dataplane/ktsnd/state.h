/* What the daemon holds; for the files of this folder alone. */
#ifndef KTSND_STATE_H
#define KTSND_STATE_H

#include "../frame/frame.h"
#include "attachment.h"
#include "client.h"
#include "daemon.h"
#include "route.h"

#define CLIENTS_MAX 256
#define ATTACHMENTS_MAX 64
#define BUFFER_BYTES (FRAME_MTU + 18 + FRAME_TUNNEL_MAX) /* what is too long is found when it is written */

/* What an event of epoll is about: the kind, and the number of it. */
enum event { EVENT_CONTROL, EVENT_REQUEST, EVENT_ATTACHMENT, EVENT_NEIGHBOUR, EVENT_CLIENT };

/* Whose a packet is, for what becomes of it. */
struct origin {
	uint32_t generation, serial; /* of the client, and of its socket */
	uint32_t socket;
	int64_t txtime_ns; /* of the socket's clock */
	uint16_t client, bytes;
	uint8_t attachment;
};

/* What waits to be sent. A handle is the number of a frame. */
struct pool {
	uint8_t (*frame)[BUFFER_BYTES];
	uint16_t *bytes;
	struct origin *origin;
	uint32_t *unused;
	uint32_t left;
};

/* The daemon's times: of now, and how far other clocks are from CLOCK_TAI. */
struct times {
	int64_t now_ns, started_ns, keep_ns;
	int64_t polled_ns, since_ns; /* of the last poll and of the one before: what is found now came in between */
	int64_t awake_ns; /* of the last poll, or of the end of its nap: from then on it is a gap */
	int64_t monotonic_ns, realtime_ns; /* to be added for CLOCK_TAI */
};

struct daemon {
	struct daemon_config config;
	struct sched *sched;
	struct pool pool;
	struct routes routes;
	struct attachment attachment[ATTACHMENTS_MAX];
	struct client client[CLIENTS_MAX];
	uint16_t active[CLIENTS_MAX], actives; /* those that may have packets; some have gone */
	int epoll, control;
	cpu_set_t cpus; /* where its other threads run */
	uint32_t clients_share, sockets_share; /* of each attachment */
	struct times times;
	struct control_status status;
	uint32_t welcomed; /* clients, since ever */
	uint64_t full[GATE_CLASSES]; /* packets of a class refused since their attachment's share was used up */
};

/* daemon_watch has something be told of a descriptor. Returns 0 or -errno. */
int daemon_watch(struct daemon *d, int fd, enum event kind, int number);

/* daemon_handle does what an event is about. */
void daemon_handle(struct daemon *d, uint64_t about);

/* daemon_take has so many packets of a client wait, and ends one that breaks the rules. Returns whether there may be more. */
bool daemon_take(struct daemon *d, struct client *c, int most);

/* daemon_part has a client be gone. */
void daemon_part(struct daemon *d, struct client *c);

#endif
