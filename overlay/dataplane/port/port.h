/*
 * Where frames leave. A port is made by port_open and sends whole Ethernet frames,
 * without their check sequence.
 */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <stdint.h>

struct port;

/*
 * port_open opens "null", "af_packet:INTERFACE" or "af_xdp:INTERFACE". Returns 0, or
 * -EINVAL for another kind, or -errno.
 */
int port_open(struct port **port, const char *spec);
void port_close(struct port *port);

/*
 * port_send hands a frame over, which leaves by the next port_flush at the latest; both
 * return 0 or -errno, -ENOBUFS when something is lost for want of room.
 */
int port_send(struct port *port, const void *frame, uint32_t bytes);
int port_flush(struct port *port);

/* port_mac returns the six bytes of the interface's own address, or zeros. */
const uint8_t *port_mac(const struct port *port);

/* port_kind returns what is before the colon. */
const char *port_kind(const struct port *port);

/* A kind of port embeds struct port as its first member. */
struct port_ops {
	const char *kind;
	int (*open)(struct port **port, const char *interface);
	int (*send)(struct port *port, const void *frame, uint32_t bytes);
	int (*flush)(struct port *port); /* NULL: send does all */
	void (*close)(struct port *port);
};

struct port {
	const struct port_ops *ops;
	uint8_t mac[6];
};

extern const struct port_ops port_null, port_af_packet, port_af_xdp;

#endif
