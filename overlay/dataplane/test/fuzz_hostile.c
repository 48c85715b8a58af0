/*
 * A hostile process against a whole daemon: what it writes to its ring and says on its
 * socket is the input. Beside it an honest one has a packet sent after each input, and
 * nothing that the daemon holds may be missing afterwards.
 *
 * With clang's -fsanitize=fuzzer it is a fuzzer; without, it runs the files it is given.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../ktsnd/clock.h"
#include "../ktsnd/state.h"
#include "../wire/pass.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define CONTROL "/tmp/ktsn-fuzz-control.%d"
#define CLIENTS "/tmp/ktsn-fuzz-clients.%d"
#define HONEST "/tmp/ktsn-fuzz-honest.%d"

#define PACKETS 64

#define REQUIRE(what)                                                                  \
	do {                                                                               \
		if (!(what)) {                                                                 \
			fprintf(stderr, "fuzz_hostile.c:%d: not so: %s\n", __LINE__, #what);       \
			abort();                                                                   \
		}                                                                              \
	} while (0)

/* A process at the daemon. */
struct process {
	int sock, memory;
	struct wire_ring *ring;
};

static struct daemon *daemon_;
static struct process honest;
static uint32_t honest_socket;
static struct sockaddr_un control_at, clients_at, honest_at;

static void remove_paths(void)
{
	unlink(control_at.sun_path);
	unlink(clients_at.sun_path);
	unlink(honest_at.sun_path);
}

static int dial(const struct sockaddr_un *at)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	REQUIRE(sock >= 0 && connect(sock, (const struct sockaddr *)at, sizeof(*at)) == 0);
	return sock;
}

/* polls long enough for the sockets to be listened to, which is once a millisecond. */
static void polls(void)
{
	daemon_->times.keep_ns = 0;
	daemon_poll(daemon_);
	daemon_->times.keep_ns = 0;
	daemon_poll(daemon_);
}

static void open_process(struct process *p, const struct sockaddr_un *at)
{
	struct wire_message welcome;

	int err = -EAGAIN;

	p->sock = dial(at);
	/* It is not heard while what others have passed is not closed yet. */
	for (int i = 0; i < 10000 && err == -EAGAIN; i++) {
		polls();
		err = pass_receive(p->sock, &welcome, sizeof(welcome), &p->memory, MSG_DONTWAIT);
		usleep(err ? 100 : 0);
	}
	REQUIRE(!err && p->memory >= 0);
	p->ring = mmap(NULL, sizeof(*p->ring), PROT_READ | PROT_WRITE, MAP_SHARED, p->memory, 0);
	REQUIRE(p->ring != MAP_FAILED);
}

static void close_process(struct process *p)
{
	munmap(p->ring, sizeof(*p->ring));
	close(p->memory);
	close(p->sock);
}

/* open_udp passes a bound socket, as LibKTSN does. */
static void open_udp(struct process *p)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct wire_message m = { .type = WIRE_OPEN, .clock = CLOCK_TAI };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	REQUIRE(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	(void)pass_send(p->sock, &m, sizeof(m), fd, MSG_DONTWAIT);
	close(fd);
}

static void ask(struct control_request *request)
{
	static struct control_answer answer;
	int sock = dial(&control_at), extra;

	request->version = CONTROL_VERSION;
	REQUIRE(pass_send(sock, request, sizeof(*request), -1, 0) == 0);
	polls();
	REQUIRE(pass_receive(sock, &answer, sizeof(answer), &extra, MSG_DONTWAIT) == 0 && answer.error == 0);
	close(sock);
	polls();
}

static void attach(const char *name, const struct sockaddr_un *at)
{
	static struct control_request request;

	request = (struct control_request){ .type = CONTROL_ATTACH };
	strcpy(request.attach.name, name);
	strcpy(request.attach.path, at->sun_path);
	request.attach.addresses = 1;
	memcpy(request.attach.address[0], (const uint8_t[]){ [10] = 0xff, 0xff, 127, 0, 0, 1 }, 16);
	ask(&request);
}

static void set_up(void)
{
	static struct control_request request;
	struct daemon_config config = {
		.control = control_at.sun_path,
		.sched = { .strategy = &queue_earliest_txtime, .link_bps = 1000000000, .guard_ns = 1000,
			   .horizon_ns = 100000, .grace_ns = INT64_C(1000000000), .late_max_ns = INT64_C(2000000000), .packets = PACKETS },
	};
	struct wire_message m;
	int extra;

	control_at.sun_family = clients_at.sun_family = honest_at.sun_family = AF_UNIX;
	snprintf(control_at.sun_path, sizeof(control_at.sun_path), CONTROL, getpid());
	snprintf(clients_at.sun_path, sizeof(clients_at.sun_path), CLIENTS, getpid());
	snprintf(honest_at.sun_path, sizeof(honest_at.sun_path), HONEST, getpid());
	atexit(remove_paths);
	REQUIRE(port_open(&config.port, "null") == 0 && daemon_new(&daemon_, &config) == 0);
	attach("hostile", &clients_at);
	attach("honest", &honest_at);
	request.type = CONTROL_ROUTE;
	memcpy(request.route.address, (const uint8_t[]){ [10] = 0xff, 0xff, 127, 0, 0, 1 }, 16);
	request.route.mac[0] = 2;
	ask(&request);
	open_process(&honest, &honest_at);
	open_udp(&honest);
	polls();
	REQUIRE(pass_receive(honest.sock, &m, sizeof(m), &extra, MSG_DONTWAIT) == 0 && m.type == WIRE_OPENED && m.error == 0);
	honest_socket = m.socket;
}

/* be_honest has a packet sent, and sees that it was. */
static void be_honest(void)
{
	uint32_t head = atomic_load(&honest.ring->head);
	uint64_t before = sched_count(daemon_->sched, 5, SCHED_SENT);
	struct wire_slot *slot = &honest.ring->slot[head % WIRE_SLOTS];

	*slot = (struct wire_slot){ .txtime_ns = clock_ns(CLOCK_TAI), .socket = honest_socket, .bytes = 4, .priority = 5, .to_port = 9 };
	memcpy(slot->to, (const uint8_t[]){ [10] = 0xff, 0xff, 127, 0, 0, 1 }, 16);
	atomic_store(&honest.ring->head, head + 1);
	for (int i = 0; i < 10000 && sched_count(daemon_->sched, 5, SCHED_SENT) == before; i++) {
		daemon_poll(daemon_);
	}
	REQUIRE(sched_count(daemon_->sched, 5, SCHED_SENT) > before);
}

/* whole says that every buffer is unused, or of a packet that waits. */
static bool whole(void)
{
	uint32_t waiting = 0;

	for (int class = 0; class < GATE_CLASSES; class++) {
		waiting += sched_waiting(daemon_->sched, class);
	}
	return daemon_->pool.left + waiting == PACKETS + 1 && daemon_->attachment[0].waiting + daemon_->attachment[1].waiting == waiting;
}

/* Input: bytes are taken from its front. */
struct input {
	const uint8_t *data;
	size_t left;
};

static uint64_t number(struct input *in, size_t bytes)
{
	uint64_t value = 0;

	for (; bytes > 0 && in->left > 0; bytes--, in->left--) {
		value = value << 8 | *in->data++;
	}
	return value;
}

static void chunk(struct input *in, void *to, size_t bytes)
{
	bytes = bytes < in->left ? bytes : in->left;
	memcpy(to, in->data, bytes);
	in->data += bytes;
	in->left -= bytes;
}

/* write_slot writes a packet that is right but for what the input says. */
static void write_slot(struct process *p, struct input *in)
{
	uint32_t head = atomic_load(&p->ring->head);
	struct wire_slot *slot = &p->ring->slot[head % WIRE_SLOTS];

	*slot = (struct wire_slot){ .txtime_ns = clock_ns(CLOCK_TAI) + (int64_t)number(in, 8), .to_port = 9 };
	slot->socket = (uint32_t)number(in, 1);
	slot->bytes = (uint16_t)number(in, 2);
	slot->priority = (uint8_t)number(in, 1);
	if (slot->priority == 5) {
		slot->priority = 4; /* that of the honest one, so that its own are counted */
	}
	memcpy(slot->to, (const uint8_t[]){ [10] = 0xff, 0xff, 127, 0, 0, 1 }, 16);
	atomic_store(&p->ring->head, head + 1);
}

static void act(struct process *p, struct input *in)
{
	uint8_t raw[64];
	size_t bytes;

	switch (number(in, 1) % 8) {
	case 0:
		chunk(in, (uint8_t *)p->ring + number(in, 4) % (sizeof(*p->ring) - 256), number(in, 1));
		break;
	case 1:
		atomic_store(&p->ring->head, (uint32_t)number(in, 4));
		break;
	case 2:
		bytes = number(in, 1) % sizeof(raw);
		memset(raw, 0, sizeof(raw));
		chunk(in, raw, bytes);
		(void)pass_send(p->sock, raw, bytes, in->left & 1 ? p->memory : -1, MSG_DONTWAIT);
		break;
	case 3:
		open_udp(p);
		break;
	case 4:
		(void)!ftruncate(p->memory, (off_t)number(in, 4));
		break;
	case 5:
		polls();
		break;
	default:
		write_slot(p, in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct input in = { data, bytes };
	struct process hostile;

	if (!daemon_) {
		set_up();
	}
	open_process(&hostile, &clients_at);
	while (in.left > 0) {
		act(&hostile, &in);
	}
	polls();
	close_process(&hostile);
	polls();
	for (int i = 1; i < CLIENTS_MAX; i++) {
		REQUIRE(daemon_->client[i].sock < 0);
	}
	be_honest();
	REQUIRE(whole());
	return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	static uint8_t data[1 << 16];

	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "rb");
		size_t bytes;

		REQUIRE(f);
		bytes = fread(data, 1, sizeof(data), f);
		fclose(f);
		LLVMFuzzerTestOneInput(data, bytes);
	}
	return 0;
}
#endif
