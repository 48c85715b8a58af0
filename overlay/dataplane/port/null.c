/* A port that drops every frame, to measure what stands before it. */
#include <errno.h>
#include <stdlib.h>

#include "port.h"

static int null_open(struct port **port, const char *interface)
{
	if (*interface) {
		return -EINVAL;
	}
	*port = calloc(1, sizeof(**port));
	if (!*port) {
		return -ENOMEM;
	}
	(*port)->ops = &port_null;
	return 0;
}

static int null_send(struct port *port, const void *frame, uint32_t bytes)
{
	(void)port, (void)frame, (void)bytes;
	return 0;
}

static void null_close(struct port *port)
{
	free(port);
}

const struct port_ops port_null = { "null", null_open, null_send, NULL, null_close };
