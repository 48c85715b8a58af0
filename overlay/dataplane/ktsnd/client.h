/*
 * A process that sends through the daemon: its ring, and the sockets that it has shown
 * to be its own. Whatever it writes, it reaches nothing but its own packets: a slot is
 * copied before it is looked at, and where a packet comes from is read from the kernel.
 */
#ifndef KTSND_CLIENT_H
#define KTSND_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "../wire/wire.h"
#include "closer.h"

/* A UDP socket, of which a copy is held so that its port stays its own. */
struct client_socket {
	int fd; /* -1: none */
	int32_t clock;
	uint32_t flags; /* of struct sock_txtime */
	uint8_t ip[16]; /* all zeros after the family's prefix: any of the process's own */
	uint16_t port;
	uint32_t serial; /* unlike that of any other of the client, also of those that had its number before */
};

struct client {
	int sock; /* -1: none */
	int attachment;
	struct closer *closer; /* that of its attachment */
	uint32_t tail, error_head, sockets;
	uint32_t opened; /* sockets, since ever */
	uint32_t generation; /* unlike that of any other, for who gives it one */
	struct wire_ring *ring;
	struct client_socket socket[WIRE_SOCKETS];
};

/* client_init makes an unused one; client_welcome has it serve a new connection. Returns 0 or -errno. */
void client_init(struct client *c);
int client_welcome(struct client *c, int sock, int attachment, struct closer *closer);
void client_close(struct client *c);

/*
 * client_hear takes one message; room says whether there may be one more socket. Returns
 * 0, or -errno when the connection is over. One that closes a socket is told by *closed,
 * -1 otherwise: the caller sends what was written before, and then has client_forget
 * drop it.
 */
int client_hear(struct client *c, bool room, int *closed);
void client_forget(struct client *c, int number);

/*
 * client_take copies the next packet of the ring: its header, and as much payload as that
 * says. Returns 1, 0 when there is none, or -EPROTO when the ring or the packet cannot be.
 */
int client_take(struct client *c, struct wire_slot *slot);

/* client_tell writes what was not sent to an error slot; without room it is lost. */
void client_tell(struct client *c, const struct wire_slot *error);

/* client_find returns a socket by the number it was given, or NULL. */
const struct client_socket *client_find(const struct client *c, uint32_t number);

#endif
