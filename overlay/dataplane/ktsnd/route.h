/* Where packets to an address go: a hash table of a fixed size. */
#ifndef KTSND_ROUTE_H
#define KTSND_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#define ROUTES_MAX 1024 /* a power of two; three quarters of it are used at most */

/*
 * A receiver's MAC, and where a tunnel leads to it the node that it is at, whose address
 * is else zeros. Addresses are of IPv6, or of IPv4 mapped into it.
 */
struct hop {
	uint8_t node[16];
	uint8_t mac[6], node_mac[6];
};

struct route {
	bool used;
	uint8_t address[16];
	struct hop hop;
};

struct routes {
	uint32_t used;
	struct route route[ROUTES_MAX];
};

/* route_set sets where an address is; with a MAC of six zeros it is nowhere. Returns 0 or -ENOSPC. */
int route_set(struct routes *r, const uint8_t address[16], const struct hop *hop);

/* route_find writes where an address is, a group by its own rule, and says whether that is known. */
bool route_find(const struct routes *r, const uint8_t address[16], struct hop *hop);

/* route_tunnels says whether a tunnel leads there. */
bool route_tunnels(const struct hop *hop);

#endif
