/*
 * The daemon: rings of processes in, a scheduler, a port out, on one thread that polls;
 * what processes have passed is closed on others.
 *
 * A packet: client_take copies it from its ring → it gets the headers of the process
 * that it is from, in a buffer of the pool → sched_push → at its time sched_pop →
 * port_send. Nothing on that way blocks or allocates. Between polls, once a millisecond,
 * the sockets are listened to, a few events at most.
 */
#ifndef KTSND_DAEMON_H
#define KTSND_DAEMON_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "../port/port.h"
#include "../sched/sched.h"

struct daemon;

/* The tunnel that leads to other nodes: zeros as from where there is none. */
struct daemon_tunnel {
	uint8_t from[16]; /* this node's address, as of struct frame_end */
	uint16_t port;
	uint32_t vni;
};

struct daemon_config {
	struct sched_config sched;
	struct port *port;
	const char *control; /* the path of the control socket */
	int64_t nap_ns;      /* a poll that finds nothing to do sleeps so long at most; 0: never */
	bool tagged;         /* frames have a tag of 802.1Q with their priority */
	struct daemon_tunnel tunnel;
};

/* daemon_new opens the control socket. Returns 0 or -errno; the port stays the caller's. */
int daemon_new(struct daemon **d, const struct daemon_config *config);
void daemon_free(struct daemon *d);

/* daemon_poll does what is due now, and says whether there was a packet to take. */
bool daemon_poll(struct daemon *d);

/* daemon_run polls until *stop is set. */
void daemon_run(struct daemon *d, const volatile sig_atomic_t *stop);

#endif
