/* Where the processes of one network namespace connect, and who they are. */
#ifndef KTSND_ATTACHMENT_H
#define KTSND_ATTACHMENT_H

#include "../wire/control.h"
#include "closer.h"

struct attachment {
	int listener; /* -1: none */
	int asked;    /* a packet socket at its interface, where it asks who has an address; -1: none */
	struct control_attach who;
	struct closer *closer;   /* of what its programs have passed */
	uint32_t waiting, share; /* its packets that wait, and how many may */
	uint32_t clients, sockets;
};

/* attachment_init makes an unused one. */
void attachment_init(struct attachment *a);

/*
 * attachment_end stops to listen, by that epoll, and takes the path away. It has no clients
 * any more; packets of it may wait.
 */
void attachment_end(struct attachment *a, int epoll);

#endif
