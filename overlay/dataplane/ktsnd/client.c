#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../wire/pass.h"

void client_init(struct client *c)
{
	*c = (struct client){ .sock = -1 };
	for (int i = 0; i < WIRE_SOCKETS; i++) {
		c->socket[i].fd = -1;
	}
}

/*
 * make_ring makes the memory, whose size nobody can change any more. It is the process
 * that has all of it allocated, so that no other waits for that here.
 */
static int make_ring(struct client *c)
{
	int fd = memfd_create("ktsn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *at;
	int err;

	if (fd < 0) {
		return -errno;
	}
	if (ftruncate(fd, sizeof(*c->ring)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		goto fail;
	}
	at = mmap(NULL, sizeof(*c->ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		goto fail;
	}
	c->ring = at;
	c->ring->magic = WIRE_MAGIC;
	c->ring->version = WIRE_VERSION;
	c->ring->slots = WIRE_SLOTS;
	c->ring->slot_bytes = sizeof(struct wire_slot);
	return fd;
fail:
	err = -errno;
	close(fd);
	return err;
}

int client_welcome(struct client *c, int sock, int attachment, struct closer *closer)
{
	const struct wire_message welcome = { .type = WIRE_WELCOME };
	int fd;
	int err;

	client_init(c);
	fd = make_ring(c);
	if (fd < 0) {
		return fd;
	}
	err = pass_send(sock, &welcome, sizeof(welcome), fd, MSG_DONTWAIT);
	close(fd);
	c->sock = sock;
	c->attachment = attachment;
	c->closer = closer;
	if (err) {
		c->sock = -1;
		client_close(c);
	}
	return err;
}

void client_forget(struct client *c, int number)
{
	if (c->socket[number].fd >= 0) {
		closer_close(c->closer, c->socket[number].fd);
		c->socket[number].fd = -1;
		c->sockets--;
	}
}

void client_close(struct client *c)
{
	for (int i = 0; i < WIRE_SOCKETS; i++) {
		client_forget(c, i);
	}
	if (c->ring) {
		munmap(c->ring, sizeof(*c->ring));
	}
	if (c->sock >= 0) {
		closer_close(c->closer, c->sock); /* in its queue there may be more that was passed */
	}
	client_init(c);
}

/* option returns a number that the kernel has of a socket, by a call that takes no lock, or -errno. */
static int option(int fd, int name)
{
	int value = 0;
	socklen_t bytes = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &bytes) < 0 ? -errno : value;
}

/*
 * read_address reads where a socket is bound, as the kernel has it. That waits for the
 * socket's lock, which whoever writes to one of TCP holds for as long as what is written
 * is not in memory: what is no socket of UDP is not asked.
 */
static int read_address(int fd, struct client_socket *s)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} at;
	socklen_t bytes = sizeof(at);
	int protocol = option(fd, SO_PROTOCOL), type = option(fd, SO_TYPE);

	if (protocol < 0 || type < 0) {
		return protocol < 0 ? protocol : type;
	}
	if (protocol != IPPROTO_UDP || type != SOCK_DGRAM) {
		return -EPROTONOSUPPORT;
	}
	if (getsockname(fd, &at.any, &bytes) < 0) {
		return -errno;
	}
	memset(s->ip, 0, sizeof(s->ip));
	if (at.any.sa_family == AF_INET) {
		s->ip[10] = s->ip[11] = 0xff;
		memcpy(s->ip + 12, &at.in.sin_addr, 4);
		s->port = ntohs(at.in.sin_port);
	} else if (at.any.sa_family == AF_INET6) {
		memcpy(s->ip, &at.in6.sin6_addr, 16);
		s->port = ntohs(at.in6.sin6_port);
	} else {
		return -EAFNOSUPPORT;
	}
	return s->port ? 0 : -EDESTADDRREQ;
}

/* open_socket takes what was passed, where that is a socket and there is room. Returns its number or -errno. */
static int open_socket(struct client *c, const struct wire_message *m, const struct passed *passed, bool room)
{
	int err, free = 0;

	if (passed->count != 1 || (m->clock != CLOCK_TAI && m->clock != CLOCK_MONOTONIC && m->clock != CLOCK_REALTIME)) {
		return -EINVAL;
	}
	while (free < WIRE_SOCKETS && c->socket[free].fd >= 0) {
		free++;
	}
	if (free == WIRE_SOCKETS || !room) {
		return -EMFILE;
	}
	err = read_address(passed->fd[0], &c->socket[free]);
	if (err) {
		return err;
	}
	c->socket[free].fd = passed->fd[0];
	c->socket[free].clock = m->clock;
	c->socket[free].flags = m->flags;
	c->socket[free].serial = c->opened++;
	c->sockets++;
	return free;
}

/* expected says whether a message is one that a program may send. */
static bool expected(const struct client *c, const struct wire_message *m, const struct passed *passed)
{
	return m->type == WIRE_OPEN || (m->type == WIRE_CLOSE && passed->count == 0 && client_find(c, m->socket));
}

int client_hear(struct client *c, bool room, int *closed)
{
	struct wire_message m;
	struct passed passed;
	int number, err = pass_receive_all(c->sock, &m, sizeof(m), &passed, MSG_DONTWAIT);

	*closed = -1;
	if (err == -EAGAIN) {
		return 0;
	}
	if (!err && !expected(c, &m, &passed)) {
		err = -EPROTO;
	}
	if (!err && m.type == WIRE_CLOSE) {
		*closed = (int)m.socket;
		return 0;
	}
	number = err ? err : open_socket(c, &m, &passed, room);
	for (int i = 0; number < 0 && i < passed.count; i++) {
		closer_close(c->closer, passed.fd[i]);
	}
	if (err) {
		return err;
	}
	m = (struct wire_message){ .type = WIRE_OPENED };
	m.socket = number < 0 ? 0 : (uint32_t)number;
	m.error = number < 0 ? number : 0;
	return pass_send(c->sock, &m, sizeof(m), -1, MSG_DONTWAIT);
}

int client_take(struct client *c, struct wire_slot *slot)
{
	uint32_t waiting = atomic_load_explicit(&c->ring->head, memory_order_acquire) - c->tail;
	const struct wire_slot *from = &c->ring->slot[c->tail % WIRE_SLOTS];

	if (waiting == 0) {
		return 0;
	}
	if (waiting > WIRE_SLOTS) {
		return -EPROTO;
	}
	memcpy(slot, from, offsetof(struct wire_slot, payload));
	/* From here on the copy alone is read, whatever the process writes meanwhile. */
	atomic_signal_fence(memory_order_seq_cst);
	if (slot->bytes > WIRE_PAYLOAD_MAX) {
		return -EPROTO;
	}
	memcpy(slot->payload, from->payload, slot->bytes);
	atomic_store_explicit(&c->ring->tail, ++c->tail, memory_order_release);
	return 1;
}

void client_tell(struct client *c, const struct wire_slot *error)
{
	uint32_t waiting = c->error_head - atomic_load_explicit(&c->ring->error_tail, memory_order_acquire);
	struct wire_slot *to = &c->ring->error[c->error_head % WIRE_ERRORS];

	if (waiting >= WIRE_ERRORS) {
		return;
	}
	memcpy(to, error, offsetof(struct wire_slot, payload) + error->bytes);
	atomic_store_explicit(&c->ring->error_head, ++c->error_head, memory_order_release);
}

const struct client_socket *client_find(const struct client *c, uint32_t number)
{
	if (number >= WIRE_SOCKETS || c->socket[number].fd < 0) {
		return NULL;
	}
	return &c->socket[number];
}
