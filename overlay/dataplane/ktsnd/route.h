/* Which address is reached by which MAC: a hash table of a fixed size. */
#ifndef KTSND_ROUTE_H
#define KTSND_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#define ROUTES_MAX 1024 /* a power of two; three quarters of it are used at most */

struct route {
	bool used;
	uint8_t address[16]; /* IPv6, or IPv4 mapped into it */
	uint8_t mac[6];
};

struct routes {
	uint32_t used;
	struct route route[ROUTES_MAX];
};

/* route_set sets the MAC of an address; of six zeros it takes the route away. Returns 0 or -ENOSPC. */
int route_set(struct routes *r, const uint8_t address[16], const uint8_t mac[6]);

/* route_find writes the MAC of an address, a group's by its own rule, and says whether there is one. */
bool route_find(const struct routes *r, const uint8_t address[16], uint8_t mac[6]);

#endif
