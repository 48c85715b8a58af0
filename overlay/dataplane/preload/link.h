/*
 * This process's connection to ktsnd: its ring, and the numbers of its sockets there.
 * One lock serves all threads. It is made anew when the daemon has gone, and by a child
 * of fork for itself; nothing of it is allocated but what the daemon passes.
 */
#ifndef PRELOAD_LINK_H
#define PRELOAD_LINK_H

#include <linux/net_tstamp.h>
#include <stdbool.h>
#include <stdint.h>

#include "../wire/wire.h"

/*
 * What a socket is called by a daemon: valid while the generation is the link's. One that it
 * has refused in a generation is not shown to it again in that until again_ns.
 */
struct link_name {
	uint32_t generation, number, refused;
	int64_t again_ns;
};

/*
 * link_send writes a packet to the ring; iov is gathered into its payload. The socket
 * is shown to the daemon first where that has not been. Returns 0, -ENOBUFS when the
 * ring is full, or why there is no daemon to send by.
 */
struct iovec;
int link_send(int fd, struct link_name *name, const struct sock_txtime *how, const struct wire_slot *header,
	      const struct iovec *iov, int parts);

/*
 * link_prepare shows a socket to the daemon before it sends, so that its first packet
 * does not wait for that; what does not succeed is tried again by link_send.
 */
void link_prepare(int fd, struct link_name *name, const struct sock_txtime *how);

/* link_error takes the next packet of a socket that was not sent; there may be none. */
bool link_error(const struct link_name *name, struct wire_slot *error);

/* link_forget tells the daemon that a socket is closed. */
void link_forget(struct link_name *name);

/*
 * link_holds says whether the daemon may still have the port of a socket that this process
 * has closed: it hears of that a millisecond later, and closes its copy then.
 */
bool link_holds(void);

/*
 * link_borrowed says whether this is a child of vfork: it runs in its parent's memory,
 * and what it does with its own descriptors is nothing that the parent knows.
 */
bool link_borrowed(void);

/* link_closing is called before a descriptor is closed: it may be the link's own. */
void link_closing(int fd);

#endif
