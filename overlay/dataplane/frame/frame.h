/*
 * Ethernet frames that carry UDP over IPv4 or IPv6 (IEEE 802.3, RFC 768, 791, 8200),
 * written on behalf of a process with its own addresses. Bytes in, bytes out.
 */
#ifndef FRAME_FRAME_H
#define FRAME_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_HEADERS_MAX 66 /* Ethernet with a tag, IPv6, UDP */
#define FRAME_MTU 1500

/* One end of a datagram. An IPv4 address is mapped into IPv6 (RFC 4291 §2.5.5.2). */
struct frame_end {
	uint8_t mac[6];
	uint8_t ip[16];
	uint16_t port; /* host byte order */
};

struct frame_path {
	struct frame_end from, to;
	bool tagged;  /* with a tag of 802.1Q: priority and VLAN 0 */
	uint8_t priority; /* the PCP, 0 to 7 */
};

/* frame_is_ipv4 says whether an address is a mapped one. */
bool frame_is_ipv4(const uint8_t ip[16]);

/* frame_payload_max returns how much UDP carries in one frame to an address. */
uint32_t frame_payload_max(const uint8_t ip[16]);

/*
 * frame_write writes headers, checksums and payload, at most frame_payload_max bytes
 * of it, and returns the frame's length. Both addresses are of one family. out has
 * room for FRAME_HEADERS_MAX and the payload.
 */
uint32_t frame_write(uint8_t *out, const struct frame_path *path, const uint8_t *payload, uint32_t bytes);

#endif
