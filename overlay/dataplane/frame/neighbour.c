#include "neighbour.h"

#include <string.h>

#include "bytes.h"
#include "frame.h"

enum {
	ARP_BYTES = 28,
	ARP_REQUEST = 1,
	ARP_REPLY = 2,
	ND_SOLICIT = 135,
	ND_ADVERTISE = 136,
	ND_SOLICIT_BYTES = 24,
	ND_ADVERTISE_BYTES = 32,
	ND_SOLICITED = 0x4000,
	ND_OVERRIDE = 0x2000,
	ND_TARGET_MAC = 2,
	ICMPV6 = 58,
	ND_HOPS = 255, /* it has crossed no router (RFC 4861 §7.1.1) */
};

/* Ethernet, IPv4, and how long their addresses are. */
static const uint8_t arp_kinds[6] = { 0, 1, 0x08, 0x00, 6, 4 };

static void map(uint8_t ip[16], const uint8_t ipv4[4])
{
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + 12, ipv4, 4);
}

static bool read_arp(struct neighbour_question *q, const uint8_t *arp, uint32_t bytes)
{
	if (bytes < ARP_BYTES || memcmp(arp, arp_kinds, sizeof(arp_kinds)) != 0 || get16(arp + 6) != ARP_REQUEST) {
		return false;
	}
	memcpy(q->asker_mac, arp + 8, 6);
	map(q->asker, arp + 14);
	map(q->wanted, arp + 24);
	return true;
}

/* icmp_sum is that of the pseudo header and the message; of a whole one it is zero (RFC 8200 §8.1). */
static uint16_t icmp_sum(const uint8_t *ip, uint32_t bytes)
{
	return fold(sum(sum(ICMPV6 + bytes, ip + 8, 32), ip + IPV6_BYTES, bytes));
}

static bool read_nd(struct neighbour_question *q, const uint8_t *ip, uint32_t bytes)
{
	static const uint8_t none[16];
	const uint8_t *icmp = ip + IPV6_BYTES;
	uint32_t length;

	if (bytes < IPV6_BYTES + ND_SOLICIT_BYTES || ip[0] >> 4 != 6 || ip[6] != ICMPV6 || ip[7] != ND_HOPS) {
		return false;
	}
	length = get16(ip + 4);
	if (length < ND_SOLICIT_BYTES || length > bytes - IPV6_BYTES || icmp[0] != ND_SOLICIT || icmp[1] != 0 ||
	    icmp_sum(ip, length) != 0 || icmp[8] == 0xff) {
		return false;
	}
	memcpy(q->asker, ip + 8, 16);
	memcpy(q->wanted, icmp + 8, 16);
	return memcmp(q->wanted, none, sizeof(none)) != 0;
}

bool neighbour_read(struct neighbour_question *q, const uint8_t *frame, uint32_t bytes)
{
	if (bytes < ETHERNET_BYTES) {
		return false;
	}
	memcpy(q->asker_mac, frame + 6, 6);
	switch (get16(frame + 12)) {
	case TYPE_ARP:
		return read_arp(q, frame + ETHERNET_BYTES, bytes - ETHERNET_BYTES);
	case TYPE_IPV6:
		return read_nd(q, frame + ETHERNET_BYTES, bytes - ETHERNET_BYTES);
	}
	return false;
}

static uint8_t *put(uint8_t *at, const void *data, uint32_t bytes)
{
	memcpy(at, data, bytes);
	return at + bytes;
}

static uint8_t *put_header(uint8_t *at, const uint8_t to[6], const uint8_t from[6], uint32_t type)
{
	return put16(put(put(at, to, 6), from, 6), type);
}

static uint32_t write_arp(uint8_t *out, const struct neighbour_question *q, const uint8_t mac[6])
{
	uint8_t *at = put_header(out, q->asker_mac, mac, TYPE_ARP);

	at = put16(put(at, arp_kinds, sizeof(arp_kinds)), ARP_REPLY);
	at = put(put(at, mac, 6), q->wanted + 12, 4);
	at = put(put(at, q->asker_mac, 6), q->asker + 12, 4);
	return (uint32_t)(at - out);
}

/* write_nd answers to all nodes where nobody asks yet (RFC 4861 §7.2.4). */
static uint32_t write_nd(uint8_t *out, const struct neighbour_question *q, const uint8_t mac[6])
{
	static const uint8_t nobody[16], all[16] = { 0xff, 0x02, [15] = 1 }, all_mac[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	bool asked = memcmp(q->asker, nobody, 16) != 0;
	uint8_t *ip = put_header(out, asked ? q->asker_mac : all_mac, mac, TYPE_IPV6), *icmp, *at;

	at = put16(put16(ip, 0x6000), 0);
	at = put16(put16(at, ND_ADVERTISE_BYTES), ICMPV6 << 8 | ND_HOPS);
	icmp = put(put(at, q->wanted, 16), asked ? q->asker : all, 16);
	at = put16(put16(icmp, ND_ADVERTISE << 8), 0);
	at = put16(put16(at, ND_OVERRIDE | (asked ? ND_SOLICITED : 0)), 0);
	at = put16(put(at, q->wanted, 16), ND_TARGET_MAC << 8 | 1);
	at = put(at, mac, 6);
	put16(icmp + 2, icmp_sum(ip, ND_ADVERTISE_BYTES));
	return (uint32_t)(at - out);
}

uint32_t neighbour_write(uint8_t out[NEIGHBOUR_BYTES], const struct neighbour_question *q, const uint8_t mac[6])
{
	return frame_is_ipv4(q->wanted) ? write_arp(out, q, mac) : write_nd(out, q, mac);
}
