/*
 * What a program sees of sockets with a transmission time, a line each: the same by the
 * kernel alone and with LibKTSN. Every packet has the number of its line.
 *
 *   same ADDRESS4 ADDRESS6 GROUP4 OWN4 PORT
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LEAD_NS 500000000 /* longer than a busy machine holds a program up */
#define THREADS 4
#define EACH 10
#define BATCH 5

static struct sockaddr_in to4, group4;
static struct sockaddr_in6 to6;
static struct in_addr own4;
static uint32_t line;
static char *self, **arguments;

/* told prints a result, and which error it was. */
static void told(const char *what, long result)
{
	printf("%s: %ld%s%s\n", what, result, result < 0 ? " " : "", result < 0 ? strerrorname_np(errno) : "");
	fflush(stdout);
}

/* A message, with a transmission time unless that is 0. */
struct letter {
	uint32_t number;
	struct iovec part;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(uint64_t))];
	} control;
	struct msghdr message;
};

static void write_letter(struct letter *l, const void *to, socklen_t bytes, bool timed)
{
	struct timespec now;
	uint64_t at_ns;

	memset(l, 0, sizeof(*l));
	clock_gettime(CLOCK_TAI, &now);
	at_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + LEAD_NS;
	l->number = htonl(line);
	l->part = (struct iovec){ &l->number, sizeof(l->number) };
	l->message = (struct msghdr){ .msg_name = (void *)to, .msg_namelen = bytes, .msg_iov = &l->part, .msg_iovlen = 1 };
	if (!timed) {
		return;
	}
	l->message.msg_control = &l->control;
	l->message.msg_controllen = sizeof(l->control);
	l->control.header.cmsg_level = SOL_SOCKET;
	l->control.header.cmsg_type = SCM_TXTIME;
	l->control.header.cmsg_len = CMSG_LEN(sizeof(at_ns));
	memcpy(CMSG_DATA(&l->control.header), &at_ns, sizeof(at_ns));
}

static long send_letter(int sock, const void *to, socklen_t bytes)
{
	struct letter l;

	write_letter(&l, to, bytes, true);
	return sendmsg(sock, &l.message, 0);
}

static int timed_socket(int family, const void *to, socklen_t bytes)
{
	const struct sock_txtime txtime = { .clockid = CLOCK_TAI };
	int sock = socket(family, SOCK_DGRAM, 0);

	if (setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)) < 0 || (to && connect(sock, to, bytes) < 0)) {
		perror("same: a socket");
		exit(1);
	}
	return sock;
}

static void options(void)
{
	struct sock_txtime txtime = { .clockid = CLOCK_BOOTTIME }, two[2] = { { .clockid = CLOCK_TAI } };
	socklen_t bytes = sizeof(txtime);
	int sock = socket(AF_INET, SOCK_DGRAM, 0);

	told("a clock that is none of them", setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)));
	txtime = (struct sock_txtime){ CLOCK_TAI, 1u << 20 };
	told("flags that there are not", setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)));
	told("half an option", setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, 4));
	told("an option and a half", setsockopt(sock, SOL_SOCKET, SO_TXTIME, two, sizeof(txtime) + 4));
	told("without the option", send_letter(sock, &to4, sizeof(to4)));
	txtime = (struct sock_txtime){ CLOCK_MONOTONIC, SOF_TXTIME_REPORT_ERRORS };
	told("an option", setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)));
	memset(&txtime, 0xff, sizeof(txtime));
	told("what it is", getsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, &bytes));
	told("  its clock", txtime.clockid);
	told("  its flags", txtime.flags);
	told("  its length", bytes);
	close(sock);
	told("of no socket", setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)));
	told("by no socket", send_letter(sock, &to4, sizeof(to4)));
}

static void addresses(void)
{
	int sock = timed_socket(AF_INET, &to4, sizeof(to4)), other;

	line = 1;
	told("connected", send_letter(sock, NULL, 0));
	other = timed_socket(AF_INET6, &to6, sizeof(to6));
	line = 2;
	told("connected, IPv6", send_letter(other, NULL, 0));
	close(other);
	other = timed_socket(AF_INET, NULL, 0);
	line = 3;
	told("to nobody", send_letter(other, NULL, 0));
	told("unconnected", send_letter(other, &to4, sizeof(to4)));
	line = 4;
	told("by its own address", setsockopt(other, IPPROTO_IP, IP_MULTICAST_IF, &own4, sizeof(own4)));
	told("to a group", send_letter(other, &group4, sizeof(group4)));
	told("to half an address", send_letter(other, &to4, 4));
	close(other);
	other = timed_socket(AF_INET6, NULL, 0);
	line = 5;
	told("unconnected, IPv6", send_letter(other, &to6, sizeof(to6)));
	close(other);
	told("no longer connected", connect(sock, &(struct sockaddr){ .sa_family = AF_UNSPEC }, sizeof(struct sockaddr)));
	told("to nobody again", send_letter(sock, NULL, 0));
	close(sock);
}

static void shapes(void)
{
	static char big[70000];
	int sock = timed_socket(AF_INET, &to4, sizeof(to4));
	struct letter l[BATCH];
	struct mmsghdr batch[BATCH];
	struct iovec two[2];

	line = 10;
	for (int i = 0; i < BATCH; i++) {
		write_letter(&l[i], NULL, 0, true);
		batch[i] = (struct mmsghdr){ .msg_hdr = l[i].message };
	}
	told("a batch", sendmmsg(sock, batch, BATCH, 0));
	told("  the length of its last", batch[BATCH - 1].msg_len);
	line = 11;
	write_letter(&l[0], NULL, 0, true);
	two[0] = (struct iovec){ &l[0].number, 1 };
	two[1] = (struct iovec){ (char *)&l[0].number + 1, 3 };
	l[0].message.msg_iov = two;
	l[0].message.msg_iovlen = 2;
	told("in two parts", sendmsg(sock, &l[0].message, 0));
	l[0].message.msg_iovlen = 0;
	told("in none", sendmsg(sock, &l[0].message, 0));
	two[0] = (struct iovec){ big, sizeof(big) };
	l[0].message.msg_iovlen = 1;
	told("too much for a datagram", sendmsg(sock, &l[0].message, 0));
	write_letter(&l[0], NULL, 0, true);
	l[0].control.header.cmsg_len = CMSG_LEN(4);
	told("half a time", sendmsg(sock, &l[0].message, 0));
	write_letter(&l[0], NULL, 0, true);
	l[0].message.msg_controllen = CMSG_LEN(4);
	told("a time that is cut off", sendmsg(sock, &l[0].message, 0));
	line = 12;
	write_letter(&l[0], NULL, 0, false);
	told("without a time", sendmsg(sock, &l[0].message, 0));
	told("by write", write(sock, &l[0].number, 4));
	told("by writev", writev(sock, &l[0].part, 1));
	told("by send", send(sock, &l[0].number, 4, 0));
	told("by sendto", sendto(sock, &l[0].number, 4, 0, NULL, 0));
	close(sock);
}

static void copies(void)
{
	int sock = timed_socket(AF_INET, &to4, sizeof(to4)), copy = dup(sock);

	line = 20;
	told("a copy", send_letter(copy, NULL, 0));
	close(sock);
	told("a copy of what is closed", send_letter(copy, NULL, 0));
	told("onto another", dup2(copy, 100));
	told("  that one", send_letter(100, NULL, 0));
	told("by fcntl", fcntl(copy, F_DUPFD, 200));
	told("  that one", send_letter(200, NULL, 0));
	told("flags of it", fcntl(200, F_GETFD));
	told("closed", close(200));
	told("closed twice", close(200));
	told("by what is closed", send_letter(200, NULL, 0));
	close(100);
	sock = open("/dev/null", O_RDWR); /* a number that had another meaning */
	told("another file of that number", dup2(sock, 100));
	told("  written to", write(100, "x", 1));
	told("  as a socket", send_letter(100, NULL, 0));
	close(100);
	close(copy);
	close(sock);
}

/* again has a socket bound to a port, closed, and another bound to the same, which nobody else has. */
static void again(uint16_t port)
{
	const struct sock_txtime txtime = { .clockid = CLOCK_TAI };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	long bound = 0, other;
	int sock, second;

	line = 25;
	for (int i = 0; i < EACH; i++) {
		sock = socket(AF_INET, SOCK_DGRAM, 0);
		bound += bind(sock, (struct sockaddr *)&at, sizeof(at)) == 0;
		setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime));
		send_letter(sock, &to4, sizeof(to4));
		if (i + 1 < EACH) {
			close(sock);
		}
	}
	told("bound to a port again and again", bound);
	second = socket(AF_INET, SOCK_DGRAM, 0);
	other = bind(second, (struct sockaddr *)&at, sizeof(at));
	told("bound to it while it is another's", other);
	close(second);
	close(sock);
}

static void *talk(void *sock)
{
	long sent = 0;

	for (int i = 0; i < EACH; i++) {
		sent += send_letter((int)(intptr_t)sock, NULL, 0);
	}
	return (void *)sent;
}

/* descriptors are how many there are. */
static long descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	long n = 0;

	while (readdir(all)) {
		n++;
	}
	closedir(all);
	return n;
}

/* start has another program run, as interpreters do: in this one's memory until it is another. */
static void start(void)
{
	pid_t child = vfork();
	int status;

	if (child == 0) {
		close_range(3, ~0U, 0);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	told("a program in its memory", status);
}

static void processes(void)
{
	int sock = timed_socket(AF_INET, &to4, sizeof(to4)), status;
	pthread_t thread[THREADS];
	char number[16];
	long sent = 0, before;
	pid_t child;

	line = 30;
	for (int i = 0; i < THREADS; i++) {
		pthread_create(&thread[i], NULL, talk, (void *)(intptr_t)sock);
	}
	for (int i = 0; i < THREADS; i++) {
		void *one;

		pthread_join(thread[i], &one);
		sent += (long)one;
	}
	told("threads", sent);
	line = 31;
	child = fork();
	if (child == 0) {
		_exit(send_letter(sock, NULL, 0) == 4 && send_letter(sock, NULL, 0) == 4 ? 0 : 1);
	}
	waitpid(child, &status, 0);
	told("a child", status);
	told("beside it", send_letter(sock, NULL, 0));
	snprintf(number, sizeof(number), "%d", sock);
	child = fork();
	if (child == 0) {
		arguments[0] = number; /* who it is then */
		execv(self, arguments);
		_exit(1);
	}
	waitpid(child, &status, 0);
	told("another program", status);
	line = 33;
	before = descriptors();
	start();
	told("after it", send_letter(sock, NULL, 0));
	told("  descriptors more", descriptors() - before);
	close(sock);
}

/* send_two sends a datagram of two numbers, or a part of one. */
static long send_two(int sock, const struct sockaddr_in *to, int flags)
{
	uint32_t two[2] = { htonl(line), htonl(line) };
	struct letter l;

	write_letter(&l, to, to ? sizeof(*to) : 0, true);
	l.part = (struct iovec){ two, sizeof(two) };
	return sendmsg(sock, &l.message, flags);
}

/* set_for has a packet sent while an option has a value, and one when it has that from before. */
static void set_for(const char *what, int level, int option, int value)
{
	int sock = timed_socket(AF_INET, &to4, sizeof(to4)), before;
	socklen_t bytes = sizeof(before);

	getsockopt(sock, level, option, &before, &bytes);
	setsockopt(sock, level, option, &value, sizeof(value));
	told(what, send_two(sock, NULL, 0));
	setsockopt(sock, level, option, &before, sizeof(before));
	line = 29;
	told("  and as it was", send_letter(sock, NULL, 0));
	line = 40;
	close(sock);
}

/* others asks for what ktsnd does not do: by LibKTSN, too, the kernel has such packets. */
static void others(void)
{
	int sock = timed_socket(AF_INET, &to4, sizeof(to4)), hops = 5;

	line = 40;
	told("the beginning", send_two(sock, NULL, MSG_MORE));
	told("the rest", send_two(sock, NULL, 0));
	told("out of band", send_two(sock, NULL, MSG_OOB));
	close(sock);
	set_for("in segments", IPPROTO_UDP, UDP_SEGMENT, 4);
	set_for("over few routers", IPPROTO_IP, IP_TTL, 5);
	set_for("of a service", IPPROTO_IP, IP_TOS, 0x10);
	set_for("corked", IPPROTO_UDP, UDP_CORK, 1);
	sock = timed_socket(AF_INET, NULL, 0);
	setsockopt(sock, IPPROTO_IP, IP_MULTICAST_IF, &own4, sizeof(own4));
	setsockopt(sock, IPPROTO_IP, IP_MULTICAST_TTL, &hops, sizeof(hops));
	told("to a group over routers", send_two(sock, &group4, 0));
	line = 29;
	told("  and to no group", send_letter(sock, &to4, sizeof(to4)));
	close(sock);
}

int main(int argc, char **argv)
{
	if (argc != 6) {
		fprintf(stderr, "usage: same ADDRESS4 ADDRESS6 GROUP4 OWN4 PORT\n");
		return 2;
	}
	if (argv[0][0] >= '0' && argv[0][0] <= '9') { /* started by itself, with a socket */
		line = 32;
		return send_letter(atoi(argv[0]), NULL, 0) == 4 ? 0 : 1;
	}
	self = realpath("/proc/self/exe", NULL);
	arguments = argv;
	to4 = group4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[5])) };
	to6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = to4.sin_port };
	inet_pton(AF_INET, argv[1], &to4.sin_addr);
	inet_pton(AF_INET6, argv[2], &to6.sin6_addr);
	inet_pton(AF_INET, argv[3], &group4.sin_addr);
	inet_pton(AF_INET, argv[4], &own4);
	options();
	addresses();
	shapes();
	copies();
	again((uint16_t)(atoi(argv[5]) + 1));
	processes();
	others();
	usleep(LEAD_NS / 1000 * 3 / 2); /* until all have left */
	return 0;
}
