/* What a process may do to its ring and its socket, and what becomes of it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../ktsnd/client.h"
#include "../wire/pass.h"

/* A daemon's client, and the process at the other end. */
struct pair {
	struct client client;
	struct closer *closer;
	int sock;
	int memory;
	struct wire_ring *ring;
};

static int set_up(void **state)
{
	static struct pair p;
	struct wire_message welcome;
	cpu_set_t cpus;
	int socks[2];

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	assert_int_equal(closer_new(&p.closer, &cpus), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, socks), 0);
	assert_int_equal(client_welcome(&p.client, socks[0], 0, p.closer), 0);
	p.sock = socks[1];
	assert_int_equal(pass_receive(p.sock, &welcome, sizeof(welcome), &p.memory, 0), 0);
	assert_int_equal(welcome.type, WIRE_WELCOME);
	p.ring = mmap(NULL, sizeof(*p.ring), PROT_READ | PROT_WRITE, MAP_SHARED, p.memory, 0);
	assert_ptr_not_equal(p.ring, MAP_FAILED);
	*state = &p;
	return 0;
}

/* all_closed waits until the thread has closed what was given to it. */
static void all_closed(struct pair *p)
{
	while (closer_waiting(p->closer) > 0) {
		usleep(1000);
	}
}

static int tear_down(void **state)
{
	struct pair *p = *state;

	client_close(&p->client);
	all_closed(p); /* the next test may count descriptors */
	closer_end(p->closer);
	munmap(p->ring, sizeof(*p->ring));
	close(p->memory);
	close(p->sock);
	return 0;
}

/* open_udp shows the daemon a UDP socket; returns what it said. */
static struct wire_message open_socket(struct pair *p, int type, bool bound, int32_t clock)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct wire_message m = { .type = WIRE_OPEN, .clock = clock };
	int fd = socket(AF_INET, type, type == SOCK_RAW ? IPPROTO_UDP : 0), extra, closed;

	if (bound) {
		assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	}
	assert_int_equal(pass_send(p->sock, &m, sizeof(m), fd, 0), 0);
	close(fd);
	assert_int_equal(client_hear(&p->client, true, &closed), 0);
	assert_int_equal(closed, -1);
	assert_int_equal(pass_receive(p->sock, &m, sizeof(m), &extra, 0), 0);
	assert_int_equal(m.type, WIRE_OPENED);
	return m;
}

static void a_packet_is_copied_whole(void **state)
{
	struct pair *p = *state;
	struct wire_slot got, *slot = &p->ring->slot[0];

	*slot = (struct wire_slot){ .txtime_ns = 42, .socket = 3, .bytes = 5, .priority = 7, .to_port = 9 };
	memcpy(slot->payload, "hello", 5);
	assert_int_equal(client_take(&p->client, &got), 0);
	atomic_store(&p->ring->head, 1);
	assert_int_equal(client_take(&p->client, &got), 1);
	assert_memory_equal(&got, slot, offsetof(struct wire_slot, payload) + 5);
	assert_int_equal(atomic_load(&p->ring->tail), 1);
	assert_int_equal(client_take(&p->client, &got), 0);
}

static void the_counts_may_run_over(void **state)
{
	struct pair *p = *state;
	struct wire_slot got;

	p->client.tail = UINT32_MAX - 1;
	for (uint32_t i = 0; i < 4; i++) {
		atomic_store(&p->ring->head, UINT32_MAX + i);
		assert_int_equal(client_take(&p->client, &got), 1);
	}
	assert_int_equal(client_take(&p->client, &got), 0);
}

static void a_ring_that_cannot_be_is_an_error(void **state)
{
	struct pair *p = *state;
	struct wire_slot got;

	atomic_store(&p->ring->head, WIRE_SLOTS + 1);
	assert_int_equal(client_take(&p->client, &got), -EPROTO);
	atomic_store(&p->ring->head, UINT32_MAX);
	assert_int_equal(client_take(&p->client, &got), -EPROTO);
	atomic_store(&p->ring->head, 1);
	p->ring->slot[0].bytes = WIRE_PAYLOAD_MAX + 1;
	assert_int_equal(client_take(&p->client, &got), -EPROTO);
}

static void the_memory_keeps_its_size(void **state)
{
	struct pair *p = *state;

	assert_int_equal(ftruncate(p->memory, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(p->memory, sizeof(*p->ring) * 2), -1);
	assert_int_equal(fcntl(p->memory, F_ADD_SEALS, F_SEAL_WRITE), -1);
}

static void only_bound_udp_sockets_are_taken(void **state)
{
	struct pair *p = *state;
	struct wire_message m = open_socket(p, SOCK_DGRAM, true, CLOCK_TAI);

	assert_int_equal(m.error, 0);
	assert_non_null(client_find(&p->client, m.socket));
	assert_int_not_equal(client_find(&p->client, m.socket)->port, 0);
	assert_int_equal(client_find(&p->client, m.socket)->ip[12], 127);
	assert_int_equal(open_socket(p, SOCK_DGRAM, false, CLOCK_TAI).error, -EDESTADDRREQ);
	assert_int_equal(open_socket(p, SOCK_STREAM, true, CLOCK_TAI).error, -EPROTONOSUPPORT);
	if (geteuid() == 0) { /* nobody else may open one */
		assert_int_equal(open_socket(p, SOCK_RAW, true, CLOCK_TAI).error, -EPROTONOSUPPORT);
	}
	assert_int_equal(open_socket(p, SOCK_DGRAM, true, 77).error, -EINVAL);
	assert_int_equal(p->client.sockets, 1);
}

static void there_are_so_many_sockets_and_no_more(void **state)
{
	struct pair *p = *state;

	for (int i = 0; i < WIRE_SOCKETS; i++) {
		assert_int_equal(open_socket(p, SOCK_DGRAM, true, CLOCK_MONOTONIC).error, 0);
	}
	assert_int_equal(open_socket(p, SOCK_DGRAM, true, CLOCK_MONOTONIC).error, -EMFILE);
	client_forget(&p->client, 7);
	assert_int_equal(open_socket(p, SOCK_DGRAM, true, CLOCK_MONOTONIC).socket, 7);
}

/* hears sends a message and returns what the daemon makes of it. */
static int hears(struct pair *p, const void *data, size_t bytes, int fd, int *closed)
{
	assert_int_equal(pass_send(p->sock, data, bytes, fd, 0), 0);
	return client_hear(&p->client, true, closed);
}

static void messages_that_are_none_end_the_connection(void **state)
{
	struct pair *p = *state;
	struct wire_message m = { .type = WIRE_CLOSE, .socket = 0 };
	int closed;

	assert_int_equal(client_hear(&p->client, true, &closed), 0);
	assert_int_equal(hears(p, &m, sizeof(m), -1, &closed), -EPROTO);
	assert_int_equal(hears(p, &m, 3, -1, &closed), -EBADMSG);
	m.type = 99;
	assert_int_equal(hears(p, &m, sizeof(m), p->sock, &closed), -EPROTO);
	m = open_socket(p, SOCK_DGRAM, true, CLOCK_TAI);
	m.type = WIRE_CLOSE;
	assert_int_equal(hears(p, &m, sizeof(m), -1, &closed), 0);
	assert_int_equal(closed, m.socket);
	m = (struct wire_message){ .type = WIRE_OPEN, .clock = CLOCK_TAI };
	assert_int_equal(hears(p, &m, sizeof(m), -1, &closed), 0);
	shutdown(p->sock, SHUT_RDWR);
	assert_int_equal(client_hear(&p->client, true, &closed), -ECONNRESET);
}

/* descriptors are how many this process has. */
static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		n += fcntl(fd, F_GETFD) >= 0;
	}
	return n;
}

/* send_many passes a descriptor so many times with one message. */
static void send_many(struct pair *p, const void *data, size_t bytes, int fd, int times)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int) * PASS_MAX)];
	} control = { 0 };
	struct iovec part = { .iov_base = (void *)data, .iov_len = bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control };

	message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)times);
	control.header.cmsg_len = CMSG_LEN(sizeof(int) * (size_t)times);
	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_RIGHTS;
	for (int i = 0; i < times; i++) {
		memcpy(CMSG_DATA(&control.header) + sizeof(int) * (size_t)i, &fd, sizeof(fd));
	}
	assert_int_equal(sendmsg(p->sock, &message, 0), bytes);
}

static void what_is_not_taken_is_closed(void **state)
{
	static const int times[] = { 2, 3, PASS_MAX };
	struct pair *p = *state;
	const struct wire_message open = { .type = WIRE_OPEN, .clock = CLOCK_TAI }, none = { .type = 99 };
	struct wire_message m;
	int before = descriptors(), closed, extra;

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		send_many(p, &open, sizeof(open), p->sock, times[i]);
		assert_int_equal(client_hear(&p->client, true, &closed), 0);
		assert_int_equal(pass_receive(p->sock, &m, sizeof(m), &extra, 0), 0);
		assert_int_equal(m.error, -EINVAL);
		send_many(p, &none, sizeof(none), p->sock, times[i]);
		assert_int_equal(client_hear(&p->client, true, &closed), -EPROTO);
		send_many(p, &none, 3, p->sock, times[i]);
		assert_int_equal(client_hear(&p->client, true, &closed), -EBADMSG);
	}
	all_closed(p);
	assert_int_equal(descriptors(), before);
}

static void without_room_there_are_no_more_sockets(void **state)
{
	struct pair *p = *state;
	struct wire_message m = { .type = WIRE_OPEN, .clock = CLOCK_TAI };
	int closed, extra;

	assert_int_equal(pass_send(p->sock, &m, sizeof(m), p->sock, 0), 0);
	assert_int_equal(client_hear(&p->client, false, &closed), 0);
	assert_int_equal(pass_receive(p->sock, &m, sizeof(m), &extra, 0), 0);
	assert_int_equal(m.error, -EMFILE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_packet_is_copied_whole),
		TEST(the_counts_may_run_over),
		TEST(a_ring_that_cannot_be_is_an_error),
		TEST(the_memory_keeps_its_size),
		TEST(only_bound_udp_sockets_are_taken),
		TEST(there_are_so_many_sockets_and_no_more),
		TEST(messages_that_are_none_end_the_connection),
		TEST(what_is_not_taken_is_closed),
		TEST(without_room_there_are_no_more_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
