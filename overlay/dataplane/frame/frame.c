#include "frame.h"

#include <string.h>

#include "bytes.h"

enum {
	PROTOCOL_UDP = 17,
	VXLAN_BYTES = 8,
	HOPS = 64,
	GROUP_HOPS = 1, /* as of a socket that was told nothing else (RFC 1112 §6.1, RFC 3493 §5.2) */
};

bool frame_is_ipv4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

static uint32_t ip_bytes(const uint8_t ip[16])
{
	return frame_is_ipv4(ip) ? IPV4_BYTES : IPV6_BYTES;
}

uint32_t frame_payload_max(const uint8_t ip[16])
{
	return FRAME_MTU - UDP_BYTES - ip_bytes(ip);
}

static uint8_t *put_ethernet(uint8_t *at, const struct frame_path *path)
{
	memcpy(at, path->to.mac, 6);
	memcpy(at + 6, path->from.mac, 6);
	at += 12;
	if (path->tagged) {
		at = put16(at, TYPE_TAG);
		at = put16(at, (uint32_t)path->priority << 13);
	}
	return put16(at, frame_is_ipv4(path->to.ip) ? TYPE_IPV4 : TYPE_IPV6);
}

/* hops is how many routers a packet may cross. */
static uint32_t hops(const uint8_t to[16])
{
	bool group = frame_is_ipv4(to) ? to[12] >> 4 == 0xe : to[0] == 0xff;

	return group ? GROUP_HOPS : HOPS;
}

static uint8_t *put_ipv4(uint8_t *at, const struct frame_path *path, uint32_t udp_bytes)
{
	uint8_t *start = at;

	at = put16(at, 0x4500);
	at = put16(at, IPV4_BYTES + udp_bytes);
	at = put16(at, 0);      /* no identification: it is never a fragment (RFC 6864) */
	at = put16(at, 0x4000); /* nor to become one */
	at = put16(at, hops(path->to.ip) << 8 | PROTOCOL_UDP);
	at = put16(at, 0);
	memcpy(at, path->from.ip + 12, 4);
	memcpy(at + 4, path->to.ip + 12, 4);
	put16(start + 10, fold(sum(0, start, IPV4_BYTES)));
	return start + IPV4_BYTES;
}

static uint8_t *put_ipv6(uint8_t *at, const struct frame_path *path, uint32_t udp_bytes)
{
	at = put16(at, 0x6000);
	at = put16(at, 0);
	at = put16(at, udp_bytes);
	at = put16(at, PROTOCOL_UDP << 8 | hops(path->to.ip));
	memcpy(at, path->from.ip, 16);
	memcpy(at + 16, path->to.ip, 16);
	return at + 32;
}

/* udp_sum is that of the pseudo header, the header and the payload (RFC 768, RFC 8200 §8.1). */
static uint16_t udp_sum(const struct frame_path *path, const uint8_t *udp, uint32_t udp_bytes)
{
	bool ipv4 = frame_is_ipv4(path->to.ip);
	uint32_t from = ipv4 ? 12 : 0;
	uint64_t value = PROTOCOL_UDP + udp_bytes;
	uint16_t folded;

	value = sum(value, path->from.ip + from, 16 - from);
	value = sum(value, path->to.ip + from, 16 - from);
	folded = fold(sum(value, udp, udp_bytes));
	return folded ? folded : 0xffff;
}

/* put_headers writes all headers up to that of UDP, whose checksum is left to be filled in. */
static uint8_t *put_headers(uint8_t *at, const struct frame_path *path, uint32_t udp_bytes)
{
	at = put_ethernet(at, path);
	at = frame_is_ipv4(path->to.ip) ? put_ipv4(at, path, udp_bytes) : put_ipv6(at, path, udp_bytes);
	at = put16(at, path->from.port);
	at = put16(at, path->to.port);
	at = put16(at, udp_bytes);
	return put16(at, 0);
}

uint32_t frame_write(uint8_t *out, const struct frame_path *path, const uint8_t *payload, uint32_t bytes)
{
	uint32_t udp_bytes = UDP_BYTES + bytes;
	uint8_t *at = put_headers(out, path, udp_bytes), *udp = at - UDP_BYTES;

	memcpy(at, payload, bytes);
	put16(udp + 6, udp_sum(path, udp, udp_bytes));
	return (uint32_t)(at + bytes - out);
}

uint32_t frame_tunnel_bytes(const struct frame_path *outer)
{
	return ETHERNET_BYTES + (outer->tagged ? TAG_BYTES : 0) + ip_bytes(outer->to.ip) + UDP_BYTES + VXLAN_BYTES;
}

uint32_t frame_enclose(uint8_t *out, const struct frame_path *outer, uint32_t vni, uint32_t bytes)
{
	uint32_t udp_bytes = UDP_BYTES + VXLAN_BYTES + bytes;
	uint8_t *at = put_headers(out, outer, udp_bytes), *udp = at - UDP_BYTES;

	at = put16(at, 0x0800); /* the flag I: there is a VNI */
	at = put16(at, 0);
	at = put16(at, vni >> 8);
	at = put16(at, vni << 8 & 0xff00);
	if (!frame_is_ipv4(outer->to.ip)) { /* over IPv4 there is none (RFC 7348 §4.1) */
		put16(udp + 6, udp_sum(outer, udp, udp_bytes));
	}
	return (uint32_t)(at + bytes - out);
}

uint16_t frame_flow_port(const struct frame_path *inner)
{
	uint32_t hash = 2166136261 ^ inner->from.port; /* FNV-1a */

	hash = hash * 16777619 ^ inner->to.port;
	for (int i = 0; i < 16; i++) {
		hash = (hash * 16777619 ^ inner->from.ip[i]) * 16777619 ^ inner->to.ip[i];
	}
	return (uint16_t)(0xc000 | ((hash ^ hash >> 16) & 0x3fff));
}
