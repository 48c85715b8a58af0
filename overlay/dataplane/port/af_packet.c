/*
 * A port on any interface by packet(7): one system call a frame, past the queueing
 * discipline, in the network namespace in which it was opened.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "interface.h"
#include "port.h"

struct af_packet {
	struct port port;
	int sock;
};

/* setup binds the socket to an interface. No protocol: it is to receive nothing. */
static int setup(struct af_packet *p, const char *interface)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET };
	int on = 1, err = interface_of(interface, p->port.mac, &at.sll_ifindex);

	if (err) {
		return err;
	}
	p->sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (p->sock < 0) {
		return -errno;
	}
	if (bind(p->sock, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    setsockopt(p->sock, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) < 0) {
		return -errno;
	}
	return 0;
}

static void af_packet_close(struct port *port)
{
	struct af_packet *p = (struct af_packet *)port;

	if (p->sock >= 0) {
		close(p->sock);
	}
	free(p);
}

static int af_packet_open(struct port **port, const char *interface)
{
	struct af_packet *p = calloc(1, sizeof(*p));
	int err;

	if (!p) {
		return -ENOMEM;
	}
	p->port.ops = &port_af_packet;
	p->sock = -1;
	err = setup(p, interface);
	if (err) {
		af_packet_close(&p->port);
		return err;
	}
	*port = &p->port;
	return 0;
}

static int af_packet_send(struct port *port, const void *frame, uint32_t bytes)
{
	struct af_packet *p = (struct af_packet *)port;
	ssize_t sent = send(p->sock, frame, bytes, MSG_DONTWAIT);

	if (sent < 0) {
		return errno == EAGAIN ? -ENOBUFS : -errno;
	}
	return 0;
}

const struct port_ops port_af_packet = { "af_packet", af_packet_open, af_packet_send, NULL, af_packet_close };
