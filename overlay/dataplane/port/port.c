#include "port.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const struct port_ops *const kinds[] = { &port_null, &port_af_packet, &port_af_xdp };

int port_open(struct port **port, const char *spec)
{
	const char *colon = strchr(spec, ':');
	size_t kind_bytes = colon ? (size_t)(colon - spec) : strlen(spec);

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strlen(kinds[i]->kind) == kind_bytes && strncmp(kinds[i]->kind, spec, kind_bytes) == 0) {
			return kinds[i]->open(port, colon ? colon + 1 : "");
		}
	}
	return -EINVAL;
}

void port_close(struct port *port)
{
	port->ops->close(port);
}

int port_send(struct port *port, const void *frame, uint32_t bytes)
{
	return port->ops->send(port, frame, bytes);
}

int port_flush(struct port *port)
{
	return port->ops->flush ? port->ops->flush(port) : 0;
}

const uint8_t *port_mac(const struct port *port)
{
	return port->mac;
}

const char *port_kind(const struct port *port)
{
	return port->ops->kind;
}
