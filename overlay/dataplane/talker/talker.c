/*
 * Sends timed UDP packets as a TSN program does: SO_TXTIME with CLOCK_TAI once, then a
 * transmission time with each message (as the kernel's so_txtime selftest). It knows
 * nothing of ktsnd. skerry-agent listener receives what it sends.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <linux/net_tstamp.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SIZE_MAX_BYTES 1472

/* A packet's payload, big endian; lab/load/oneway has it in Go. */
struct payload {
	char magic[4];
	uint32_t version;
	uint64_t sequence;
	uint64_t planned_ns; /* CLOCK_REALTIME */
};

struct talk {
	const char *host, *port;
	long count, cycle_ns, lead_ns, size, priority;
};

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "ktsn-talker: error: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_socket(const struct talk *t)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
	const struct sock_txtime txtime = { .clockid = CLOCK_TAI };
	const int priority = (int)t->priority;
	struct addrinfo *to;
	int err = getaddrinfo(t->host, t->port, &hints, &to), sock;

	if (err) {
		fprintf(stderr, "ktsn-talker: error: %s port %s: %s\n", t->host, t->port, gai_strerror(err));
		exit(2);
	}
	sock = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0) {
		die("socket");
	}
	if (setsockopt(sock, SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority)) < 0) {
		die("set SO_PRIORITY");
	}
	if (setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)) < 0) {
		die("set SO_TXTIME");
	}
	if (connect(sock, to->ai_addr, to->ai_addrlen) < 0) {
		die("connect");
	}
	freeaddrinfo(to);
	return sock;
}

static int send_at(int sock, const void *data, size_t bytes, int64_t txtime_ns)
{
	struct iovec part = { .iov_base = (void *)data, .iov_len = bytes };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(uint64_t))];
	} control = { 0 };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control),
	};
	uint64_t ns = (uint64_t)txtime_ns;

	control.header.cmsg_level = SOL_SOCKET;
	control.header.cmsg_type = SCM_TXTIME;
	control.header.cmsg_len = CMSG_LEN(sizeof(ns));
	memcpy(CMSG_DATA(&control.header), &ns, sizeof(ns));
	return sendmsg(sock, &message, 0) < 0 ? -errno : 0;
}

/* talk plans each packet a lead ahead, and sleeps until it is time to hand it over. */
static long talk(const struct talk *t, int sock)
{
	static union {
		struct payload head;
		char bytes[SIZE_MAX_BYTES];
	} data;
	int64_t to_real_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_TAI);
	int64_t start_ns = (clock_ns(CLOCK_TAI) / t->cycle_ns + 2) * t->cycle_ns + t->lead_ns;
	long refused = 0;

	memcpy(data.head.magic, "SKRY", 4);
	data.head.version = htobe32(1);
	for (long i = 0; i < t->count; i++) {
		int64_t planned_ns = start_ns + i * t->cycle_ns, wake_ns = planned_ns - t->lead_ns;
		struct timespec wake = { wake_ns / 1000000000, wake_ns % 1000000000 };

		while (clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, &wake, NULL) == EINTR) {
		}
		data.head.sequence = htobe64((uint64_t)i);
		data.head.planned_ns = htobe64((uint64_t)(planned_ns + to_real_ns));
		refused += send_at(sock, &data, (size_t)t->size, planned_ns) != 0;
	}
	return refused;
}

static void usage(FILE *to)
{
	fprintf(to, "Usage: ktsn-talker [-n COUNT] [-c CYCLE_NS] [-l LEAD_NS] [-s BYTES] [-p PRIORITY] ADDRESS PORT\n\n"
		    "Sends COUNT (1000) datagrams of BYTES (64; 24 to %d), one in CYCLE_NS (1000000), each\n"
		    "handed over LEAD_NS (500000) before its SO_TXTIME, with SO_PRIORITY (7).\n", SIZE_MAX_BYTES);
}

int main(int argc, char **argv)
{
	struct talk t = { .count = 1000, .cycle_ns = 1000000, .lead_ns = 500000, .size = 64, .priority = 7 };
	long *const numbers[] = { ['n'] = &t.count, ['c'] = &t.cycle_ns, ['l'] = &t.lead_ns, ['s'] = &t.size, ['p'] = &t.priority };
	int got;
	long refused;

	while ((got = getopt(argc, argv, "n:c:l:s:p:h")) != -1) {
		if (got == 'h') {
			usage(stdout);
			return 0;
		}
		if (got == '?') {
			usage(stderr);
			return 2;
		}
		*numbers[got] = strtol(optarg, NULL, 10);
	}
	if (argc - optind != 2 || t.count < 1 || t.cycle_ns < 1 || t.lead_ns < 0 || t.priority < 0 ||
	    t.size < (long)sizeof(struct payload) || t.size > SIZE_MAX_BYTES) {
		usage(stderr);
		return 2;
	}
	t.host = argv[optind];
	t.port = argv[optind + 1];
	refused = talk(&t, open_socket(&t));
	printf("{\"sent\":%ld,\"refused\":%ld}\n", t.count - refused, refused);
	return 0;
}
