/*
 * LibKTSN in a process of many threads and children, with a daemon beside it: each packet
 * comes once, whatever else threads do with their descriptors meanwhile. For TSan above all.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/net_tstamp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../ktsnd/clock.h"
#include "../ktsnd/state.h"
#include "../wire/pass.h"

#define THREADS 4
#define CHILDREN 4
#define PACKETS 500
#define CANCELLED 100

static atomic_int failed;
static char control[64], clients[64];
static struct control_answer answer;
static volatile sig_atomic_t stop;

/* A child ends while threads that it never had are not joined. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "report_thread_leaks=0";
}

static void on_signal(int number)
{
	stop = number;
}

/* serve is a daemon, until it gets SIGTERM. */
static int serve(void)
{
	struct daemon_config config = {
		.control = control,
		.nap_ns = 100000,
		.sched = { .strategy = &queue_earliest_txtime, .horizon_ns = INT64_C(10000000000), .grace_ns = INT64_C(10000000000),
			   .late_max_ns = INT64_C(60000000000), .packets = 8192 },
	};
	struct daemon *d;

	signal(SIGTERM, on_signal);
	if (port_open(&config.port, "null") || daemon_new(&d, &config)) {
		return 1;
	}
	daemon_run(d, &stop);
	daemon_free(d);
	port_close(config.port);
	return 0;
}

/* ask sends a request to the daemon, and takes its answer. */
static void ask(struct control_request *request)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0), extra, tries = 0;

	strcpy(at.sun_path, control);
	request->version = CONTROL_VERSION;
	while (connect(sock, (struct sockaddr *)&at, sizeof(at)) < 0) {
		assert_true(++tries < 5000); /* until the daemon listens */
		usleep(1000);
	}
	assert_int_equal(pass_send(sock, request, sizeof(*request), -1, 0), 0);
	assert_int_equal(pass_receive(sock, &answer, sizeof(answer), &extra, 0), 0);
	assert_int_equal(answer.error, 0);
	close(sock);
}

static pid_t set_up(void)
{
	static struct control_request request;
	pid_t daemon;

	snprintf(control, sizeof(control), "/tmp/ktsn-threads-control.%d", getpid());
	snprintf(clients, sizeof(clients), "/tmp/ktsn-threads-clients.%d", getpid());
	setenv("KTSN_SOCKET", clients, 1);
	setenv("KTSN_FALLBACK", "fail", 1);
	daemon = fork();
	if (daemon == 0) {
		_exit(serve());
	}
	assert_true(daemon > 0);
	request.type = CONTROL_ATTACH;
	strcpy(request.attach.name, "threads");
	strcpy(request.attach.path, clients);
	request.attach.addresses = 1;
	memcpy(request.attach.address[0], (const uint8_t[]){ [10] = 0xff, 0xff, 127, 0, 0, 1 }, 16);
	ask(&request);
	memset(&request, 0, sizeof(request));
	request.type = CONTROL_ROUTE;
	memcpy(request.route.address, (const uint8_t[]){ [10] = 0xff, 0xff, 127, 0, 0, 1 }, 16);
	request.route.mac[0] = 2;
	ask(&request);
	return daemon;
}

static int open_timed(void)
{
	const struct sock_txtime txtime = { .clockid = CLOCK_TAI };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int sock = socket(AF_INET, SOCK_DGRAM, 0);

	if (setsockopt(sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)) < 0 || connect(sock, (struct sockaddr *)&to, sizeof(to)) < 0) {
		failed++;
	}
	return sock;
}

/* send_now sends a packet that is due; a ring that is full is tried again. */
static void send_now(int sock)
{
	char byte = 'x';
	struct iovec part = { .iov_base = &byte, .iov_len = 1 };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(uint64_t))];
	} space = { 0 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &space, .msg_controllen = sizeof(space) };
	uint64_t now_ns = (uint64_t)clock_ns(CLOCK_TAI);

	space.header.cmsg_level = SOL_SOCKET;
	space.header.cmsg_type = SCM_TXTIME;
	space.header.cmsg_len = CMSG_LEN(sizeof(now_ns));
	memcpy(CMSG_DATA(&space.header), &now_ns, sizeof(now_ns));
	while (sendmsg(sock, &message, 0) != 1) {
		if (errno != ENOBUFS) {
			failed++;
			return;
		}
		usleep(200);
	}
}

/* talk sends from sockets that come and go, and from copies of them. */
static void *talk(void *unused)
{
	int sock = open_timed();

	(void)unused;
	for (int i = 0; i < PACKETS; i++) {
		if (i % 50 == 49) {
			int copy = dup(sock);

			close(sock);
			sock = copy;
		}
		if (i % 100 == 99) {
			close(sock);
			sock = open_timed();
		}
		send_now(sock);
	}
	close(sock);
	return NULL;
}

/* ended_well waits for a child. */
static void ended_well(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void every_packet_comes_once(void **unused)
{
	static struct control_request status = { .type = CONTROL_STATUS };
	pid_t daemon = set_up();
	pthread_t thread[THREADS];

	(void)unused;
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&thread[i], NULL, talk, NULL), 0);
	}
	for (int i = 0; i < CHILDREN; i++) { /* each has a link of its own */
		pid_t child = fork();

		if (child == 0) {
			talk(NULL);
			_exit(failed);
		}
		assert_true(child > 0);
		usleep(20000);
		ended_well(child);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
	}
	usleep(100000); /* what is in rings is taken in a poll */
	ask(&status);
	kill(daemon, SIGTERM);
	ended_well(daemon);
	assert_int_equal(failed, 0);
	assert_int_equal(answer.status.class[0].fate[SCHED_SENT], (THREADS + CHILDREN) * PACKETS);
	assert_int_equal(answer.status.malformed + answer.status.unrouted, 0);
}

/* come_and_go has the link used in each way, until it is cancelled. */
static void *come_and_go(void *unused)
{
	(void)unused;
	for (;;) {
		int sock = open_timed();

		send_now(sock);
		close(sock);
		pthread_testcancel();
	}
	return NULL;
}

/* on_alarm is a signal that comes at any moment, again and again: its child ends, as one that starts a program does. */
static void on_alarm(int number)
{
	const struct itimerval soon = { .it_value.tv_usec = 700 };
	pid_t child = fork();

	(void)number;
	if (child == 0) {
		_exit(0);
	}
	waitpid(child, NULL, 0);
	setitimer(ITIMER_REAL, &soon, NULL);
}

static void a_thread_that_is_cancelled_leaves_the_link(void **unused)
{
	pid_t daemon;
	int sock;

	(void)unused;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* ASan takes what is left of the stack of a cancelled thread for a mistake */
#endif
	failed = 0;
	usleep(50000); /* until it is known that the daemon of another test has gone */
	daemon = set_up();
	for (int i = 0; i < CANCELLED; i++) {
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, come_and_go, NULL), 0);
		usleep(1000 + 30 * (unsigned int)i);
		pthread_cancel(thread);
		pthread_join(thread, NULL);
		sock = open_timed();
		send_now(sock);
		close(sock);
	}
	kill(daemon, SIGTERM);
	ended_well(daemon);
	assert_int_equal(failed, 0);
}

static void a_signal_may_fork_at_any_moment(void **unused)
{
	pid_t daemon;

	(void)unused;
	failed = 0;
	usleep(50000);
	daemon = set_up();
	signal(SIGALRM, on_alarm);
	raise(SIGALRM);
	talk(NULL);
	signal(SIGALRM, SIG_IGN);
	kill(daemon, SIGTERM);
	ended_well(daemon);
	assert_int_equal(failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet_comes_once),
		cmocka_unit_test(a_thread_that_is_cancelled_leaves_the_link),
		cmocka_unit_test(a_signal_may_fork_at_any_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
