/* What the daemon holds; for the files of this folder alone. */
#ifndef KTSND_STATE_H
#define KTSND_STATE_H

#include "../frame/frame.h"
#include "attachment.h"
#include "client.h"
#include "daemon.h"
#include "route.h"

#define CLIENTS_MAX 64
#define ATTACHMENTS_MAX 64
#define FRAME_BYTES_MAX (FRAME_MTU + 18)

/* What an event of epoll is about: the kind, and the number of it. */
enum event { EVENT_CONTROL, EVENT_ASKED, EVENT_ATTACHMENT, EVENT_CLIENT };

/* What waits to be sent. A handle is the number of a frame. */
struct pool {
	uint8_t (*frame)[FRAME_BYTES_MAX];
	uint16_t *bytes;
	uint32_t *unused;
	uint32_t left;
};

/* The daemon's times: of now, and how far other clocks are from CLOCK_TAI. */
struct times {
	int64_t now_ns, started_ns, keep_ns;
	int64_t monotonic_ns, realtime_ns; /* to be added for CLOCK_TAI */
	int64_t gap_ns;                    /* from the last poll but one to the last */
};

struct daemon {
	struct daemon_config config;
	struct sched *sched;
	struct pool pool;
	struct routes routes;
	struct attachment attachment[ATTACHMENTS_MAX];
	struct client client[CLIENTS_MAX];
	int epoll, control;
	struct times times;
	struct control_status status;
};

/* daemon_watch has something be told of a descriptor. Returns 0 or -errno. */
int daemon_watch(struct daemon *d, int fd, enum event kind, int number);

#endif
