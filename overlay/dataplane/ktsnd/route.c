#include "route.h"

#include <errno.h>
#include <string.h>

#include "../frame/frame.h"

/* home is where the search for an address begins (FNV-1a). */
static uint32_t home(const uint8_t address[16])
{
	uint32_t hash = 2166136261;

	for (int i = 0; i < 16; i++) {
		hash = (hash ^ address[i]) * 16777619;
	}
	return hash % ROUTES_MAX;
}

/* place returns where an address is, or is to be. */
static uint32_t place(const struct routes *r, const uint8_t address[16])
{
	uint32_t at = home(address);

	while (r->route[at].used && memcmp(r->route[at].address, address, 16) != 0) {
		at = (at + 1) % ROUTES_MAX;
	}
	return at;
}

/* take_out leaves no hole in front of a route that is searched for from before it. */
static void take_out(struct routes *r, uint32_t hole)
{
	for (uint32_t at = (hole + 1) % ROUTES_MAX; r->route[at].used; at = (at + 1) % ROUTES_MAX) {
		uint32_t from = home(r->route[at].address);

		if ((at - from) % ROUTES_MAX >= (at - hole) % ROUTES_MAX) {
			r->route[hole] = r->route[at];
			hole = at;
		}
	}
	r->route[hole].used = false;
	r->used--;
}

int route_set(struct routes *r, const uint8_t address[16], const struct hop *hop)
{
	static const uint8_t none[6];
	uint32_t at = place(r, address);

	if (memcmp(hop->mac, none, 6) == 0) {
		if (r->route[at].used) {
			take_out(r, at);
		}
		return 0;
	}
	if (!r->route[at].used) {
		if (r->used >= ROUTES_MAX / 4 * 3) {
			return -ENOSPC;
		}
		r->used++;
	}
	r->route[at].used = true;
	memcpy(r->route[at].address, address, 16);
	r->route[at].hop = *hop;
	return 0;
}

/* group writes the MAC of a multicast group (RFC 1112 §6.4, RFC 2464 §7), if it is one. */
static bool group(const uint8_t address[16], uint8_t mac[6])
{
	if (address[0] == 0xff) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, address + 12, 4);
		return true;
	}
	if (frame_is_ipv4(address) && address[12] >> 4 == 0xe) {
		memcpy(mac, (const uint8_t[]){ 0x01, 0x00, 0x5e, address[13] & 0x7f, address[14], address[15] }, 6);
		return true;
	}
	return false;
}

bool route_find(const struct routes *r, const uint8_t address[16], struct hop *hop)
{
	const struct route *found;

	*hop = (struct hop){ 0 };
	if (group(address, hop->mac)) {
		return true;
	}
	found = &r->route[place(r, address)];
	if (found->used) {
		*hop = found->hop;
	}
	return found->used;
}

bool route_tunnels(const struct hop *hop)
{
	static const uint8_t none[16];

	return memcmp(hop->node, none, sizeof(none)) != 0;
}
