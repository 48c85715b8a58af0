/*
 * Ethernet frames that carry UDP over IPv4 or IPv6 (IEEE 802.3, RFC 768, 791, 8200),
 * written on behalf of a process with its own addresses, and a tunnel for them by VXLAN
 * (RFC 7348). Bytes in, bytes out.
 */
#ifndef FRAME_FRAME_H
#define FRAME_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define FRAME_HEADERS_MAX 66 /* Ethernet with a tag, IPv6, UDP */
#define FRAME_TUNNEL_MAX 74  /* those of the tunnel: a header of VXLAN more */
#define FRAME_MTU 1500
#define FRAME_VXLAN_PORT 4789
#define FRAME_VNI_MAX 0xffffff

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

/* frame_max returns the length of the longest frame. */
static inline uint32_t frame_max(bool tagged)
{
	return FRAME_MTU + 14 + (tagged ? 4 : 0);
}

/* frame_payload_max returns how much UDP carries in one frame to an address. */
uint32_t frame_payload_max(const uint8_t ip[16]);

/*
 * frame_write writes headers, checksums and payload, at most frame_payload_max bytes
 * of it, and returns the frame's length. Both addresses are of one family. out has
 * room for FRAME_HEADERS_MAX and the payload.
 */
uint32_t frame_write(uint8_t *out, const struct frame_path *path, const uint8_t *payload, uint32_t bytes);

/*
 * A frame in a tunnel between two nodes: outer is their path, its port at the receiver
 * that of the tunnel. frame_tunnel_bytes returns what stands before the frame;
 * frame_enclose writes that to out, where the frame of so many bytes follows already, and
 * returns the length of all. The sender's port tells flows apart (RFC 7348 §5): it is the
 * caller's to choose, as frame_flow_port does.
 */
uint32_t frame_tunnel_bytes(const struct frame_path *outer);
uint32_t frame_enclose(uint8_t *out, const struct frame_path *outer, uint32_t vni, uint32_t bytes);

/* frame_flow_port returns the same port of 49152 to 65535 for all packets of a flow. */
uint16_t frame_flow_port(const struct frame_path *inner);

#endif
