/*
 * Sends timed UDP packets as a TSN program does: SO_TXTIME with CLOCK_TAI once, then a
 * transmission time with each message (as the kernel's so_txtime selftest); or, to be
 * compared with, when it is time. It knows nothing of ktsnd. skerry-agent listener
 * receives what it sends.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SIZE_MAX_BYTES 1472
#define ERRORS_NS 1000000000 /* after the last packet, until all is known that was not sent */
#define SPIN_NS 120000 /* from waking up to its time: more than a sleep is late */

/* A packet's payload, big endian; lab/load/oneway has it in Go. */
struct payload {
	char magic[4];
	uint16_t flow, version;
	uint64_t sequence;
	uint64_t planned_ns; /* CLOCK_REALTIME */
};

/* How a packet leaves at its time: it is told when, or sent once it has waited. */
enum how { TXTIME, SPIN, SLEEP, HOWS };

static const char *const hows[HOWS] = { "txtime", "spin", "sleep" };

struct talk {
	const char *host, *port;
	enum how how;
	bool errors; /* it wants to know of packets that were not sent */
	long count, cycle_ns, offset_ns, lead_ns, size, priority, flow;
};

/* What became of them: late_max_ns is how long after its moment the latest was handed over. */
struct talked {
	long refused, missed, invalid;
	int64_t late_max_ns;
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
	const struct sock_txtime txtime = { .clockid = CLOCK_TAI, .flags = t->errors ? SOF_TXTIME_REPORT_ERRORS : 0 };
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
	if (t->how == TXTIME && setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)) < 0) {
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

/* hear_errors counts what the error queue has of packets that were not sent. */
static void hear_errors(int sock, struct talked *talked)
{
	char data[SIZE_MAX_BYTES], control[256];
	struct iovec part = { .iov_base = data, .iov_len = sizeof(data) };

	for (;;) {
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
		struct sock_extended_err told;

		if (recvmsg(sock, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0 || !CMSG_FIRSTHDR(&message)) {
			return;
		}
		memcpy(&told, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(told));
		if (told.ee_origin == SO_EE_ORIGIN_TXTIME) {
			talked->missed += told.ee_code == SO_EE_CODE_TXTIME_MISSED && told.ee_errno == ECANCELED;
			talked->invalid += told.ee_code == SO_EE_CODE_TXTIME_INVALID_PARAM && told.ee_errno == EINVAL;
		}
	}
}

/* wait_until sleeps until a time of CLOCK_TAI, or most of it and spins over the rest. */
static void wait_until(int64_t ns, bool spin)
{
	int64_t wake_ns = spin ? ns - SPIN_NS : ns;
	struct timespec wake = { wake_ns / 1000000000, wake_ns % 1000000000 };

	while (clock_nanosleep(CLOCK_TAI, TIMER_ABSTIME, &wake, NULL) == EINTR) {
	}
	while (spin && clock_ns(CLOCK_TAI) < ns) {
	}
}

/* talk plans each packet a lead ahead, and hands it over then, or when it is to leave. */
static struct talked talk(const struct talk *t, int sock)
{
	static union {
		struct payload head;
		char bytes[SIZE_MAX_BYTES];
	} data;
	int64_t to_real_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_TAI);
	int64_t start_ns = ((clock_ns(CLOCK_TAI) + t->lead_ns) / t->cycle_ns + 2) * t->cycle_ns + t->offset_ns;
	struct talked talked = { 0 };

	memcpy(data.head.magic, "SKRY", 4);
	data.head.flow = htobe16((uint16_t)t->flow);
	data.head.version = htobe16(1);
	for (long i = 0; i < t->count; i++) {
		int64_t planned_ns = start_ns + i * t->cycle_ns;
		int64_t moment_ns = t->how == TXTIME ? planned_ns - t->lead_ns : planned_ns, late_ns;

		data.head.sequence = htobe64((uint64_t)i);
		data.head.planned_ns = htobe64((uint64_t)(planned_ns + to_real_ns));
		wait_until(moment_ns, t->how == SPIN);
		late_ns = clock_ns(CLOCK_TAI) - moment_ns;
		talked.late_max_ns = late_ns > talked.late_max_ns ? late_ns : talked.late_max_ns;
		if (t->how == TXTIME) {
			talked.refused += send_at(sock, &data, (size_t)t->size, planned_ns) != 0;
		} else {
			talked.refused += send(sock, &data, (size_t)t->size, 0) < 0;
		}
	}
	if (t->errors) {
		wait_until(start_ns + t->count * t->cycle_ns + ERRORS_NS, false);
		hear_errors(sock, &talked);
	}
	return talked;
}

static void usage(FILE *to)
{
	fprintf(to, "Usage: ktsn-talker [-m txtime|spin|sleep] [-n COUNT] [-c CYCLE_NS] [-o OFFSET_NS] [-l LEAD_NS]\n"
		    "                   [-s BYTES] [-p PRIORITY] [-f FLOW] [-e] ADDRESS PORT\n\n"
		    "Sends COUNT (1000) datagrams of BYTES (64; 24 to %d), one in CYCLE_NS (1000000), OFFSET_NS\n"
		    "(0) after it begins, with SO_PRIORITY (7). Each is handed over LEAD_NS (500000) before its\n"
		    "SO_TXTIME, or if that is below 0 after it; or, to be compared with, sent when a sleep until\n"
		    "its time is over, or at the end of a spin. With -e it counts the packets that the error queue tells of.\n", SIZE_MAX_BYTES);
}

/* number_of reads a whole number. */
static bool number_of(const char *text, long *into)
{
	char *end;

	errno = 0;
	*into = strtol(text, &end, 10);
	return !errno && end != text && !*end;
}

/* how_of finds the name of a way to send. */
static bool how_of(const char *name, enum how *how)
{
	for (*how = 0; *how < HOWS; (*how)++) {
		if (strcmp(hows[*how], name) == 0) {
			return true;
		}
	}
	return false;
}

/* parse reads the command line. Returns -1 to go on, or the exit status. */
static int parse(struct talk *t, int argc, char **argv)
{
	long *const numbers[] = {
		['n'] = &t->count, ['c'] = &t->cycle_ns, ['o'] = &t->offset_ns, ['l'] = &t->lead_ns,
		['s'] = &t->size, ['p'] = &t->priority, ['f'] = &t->flow,
	};
	const char *wrong;
	bool right = true;
	int got;

	while (right && (got = getopt(argc, argv, "m:n:c:o:l:s:p:f:eh")) != -1) {
		if (got == 'h') {
			usage(stdout);
			return 0;
		}
		if (got == 'e') {
			t->errors = true;
			continue;
		}
		right = got != '?' && (got == 'm' ? how_of(optarg, &t->how) : number_of(optarg, numbers[got]));
	}
	wrong = !right ? "an option is none of these, or its value is no number" :
		argc - optind != 2 ? "it takes an address and a port" :
		t->size < (long)sizeof(struct payload) || t->size > SIZE_MAX_BYTES ? "-s is out of its bounds" :
		t->count < 1 || t->cycle_ns < 1 ? "-n and -c are at least 1" :
		t->offset_ns < 0 || t->priority < 0 || t->flow < 0 || t->flow > UINT16_MAX ? "-o, -p and -f are at least 0, -f at most 65535" : NULL;
	if (wrong) {
		fprintf(stderr, "ktsn-talker: error: %s\n", wrong);
		usage(stderr);
		return 2;
	}
	t->host = argv[optind];
	t->port = argv[optind + 1];
	return -1;
}

int main(int argc, char **argv)
{
	struct talk t = { .count = 1000, .cycle_ns = 1000000, .lead_ns = 500000, .size = 64, .priority = 7 };
	int done = parse(&t, argc, argv);
	struct talked talked;

	if (done >= 0) {
		return done;
	}
	talked = talk(&t, open_socket(&t));
	printf("{\"sent\":%ld,\"refused\":%ld,\"missed\":%ld,\"invalid\":%ld,\"late_max_ns\":%ld}\n", t.count - talked.refused,
	       talked.refused, talked.missed, talked.invalid, talked.late_max_ns);
	return 0;
}
