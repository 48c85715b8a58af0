/* What the daemon is told on sockets: by programs, by containers that ask for neighbours, and by its controllers. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../frame/neighbour.h"
#include "attachment.h"
#include "control.h"
#include "state.h"

#define CLOSING_MAX 64 /* descriptors that a program may have passed and that are not closed yet */

/* heard says whether programs of an attachment are: not while much that they have passed is not closed yet. */
static bool heard(const struct attachment *a)
{
	return a->closer && closer_waiting(a->closer) <= CLOSING_MAX;
}

static void welcome(struct daemon *d, int attachment)
{
	struct attachment *a = &d->attachment[attachment];
	int sock = heard(a) ? accept4(a->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
	int free = 0;
	struct client *c;

	if (sock < 0) {
		return;
	}
	while (free < CLIENTS_MAX && d->client[free].sock >= 0) {
		free++;
	}
	c = &d->client[free];
	if (free == CLIENTS_MAX || a->clients >= d->clients_share || client_welcome(c, sock, attachment, a->closer)) {
		closer_close(a->closer, sock);
		return;
	}
	a->clients++;
	c->generation = ++d->welcomed;
	if (daemon_watch(d, sock, EVENT_CLIENT, free)) {
		daemon_part(d, c);
	}
}

static void hear(struct daemon *d, struct client *c)
{
	struct attachment *a = &d->attachment[c->attachment];
	uint32_t before = c->sockets;
	int closed, err;

	if (c->sock < 0 || !heard(a)) {
		return;
	}
	err = client_hear(c, a->sockets < d->sockets_share, &closed);
	a->sockets += c->sockets - before;
	if (!err && closed < 0) {
		return;
	}
	/* What it wrote before is in the ring by now, and no more than that holds. */
	daemon_take(d, c, WIRE_SLOTS);
	if (c->sock < 0) {
		return;
	}
	if (err) {
		daemon_part(d, c);
	} else {
		client_forget(c, closed);
		a->sockets--;
	}
}

/* has says whether an address is one of an attachment's own. */
static bool has(const struct control_attach *who, const uint8_t address[16])
{
	for (int i = 0; i < who->addresses; i++) {
		if (memcmp(who->address[i], address, 16) == 0) {
			return true;
		}
	}
	return false;
}

/*
 * answer tells a container who has an address that there is a route to: no broadcast crosses
 * the overlay. Of its own one it asks whether another has it (RFC 5227, RFC 4862 §5.4), and
 * nobody does.
 */
static void answer(struct daemon *d, const struct attachment *a)
{
	uint8_t in[NEIGHBOUR_BYTES], out[NEIGHBOUR_BYTES];
	ssize_t bytes = recv(a->asked, in, sizeof(in), MSG_DONTWAIT);
	struct neighbour_question q;
	struct hop hop;

	if (bytes > 0 && neighbour_read(&q, in, (uint32_t)bytes) && !has(&a->who, q.wanted) && route_find(&d->routes, q.wanted, &hop)) {
		(void)send(a->asked, out, neighbour_write(out, &q, hop.mac), MSG_DONTWAIT); /* it will ask again */
	}
}

void daemon_handle(struct daemon *d, uint64_t about)
{
	int number = (int)(uint32_t)about, sock;

	switch (about >> 32) {
	case EVENT_CONTROL:
		sock = accept4(d->control, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (sock >= 0 && daemon_watch(d, sock, EVENT_REQUEST, sock)) {
			close(sock);
		}
		break;
	case EVENT_REQUEST:
		control_answer(d, number);
		break;
	case EVENT_ATTACHMENT:
		welcome(d, number);
		break;
	case EVENT_NEIGHBOUR:
		answer(d, &d->attachment[number]);
		break;
	case EVENT_CLIENT:
		hear(d, &d->client[number]);
		break;
	}
}
