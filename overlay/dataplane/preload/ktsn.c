/*
 * LibKTSN: loaded before the C library (LD_PRELOAD), it has datagrams with a
 * transmission time leave by ktsnd. All else goes the way it would have gone.
 *
 * A packet: sendmsg with SCM_TXTIME → what is known of the socket → link_send, which
 * writes it to the ring. Where anything is not as this knows it, the kernel is called.
 */
/* With it the C library's headers would have both names of fcntl be one. */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../wire/wire.h"
#include "link.h"
#include "message.h"
#include "option.h"
#include "real.h"

#define EXPORT __attribute__((visibility("default")))
#define FDS_MAX 65536 /* sockets above it go by the kernel */

#define FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL | MSG_CONFIRM) /* that change nothing of a packet */
#define HELD_AGAIN_NS 500000 /* until a port that the daemon may still have is asked for again */

enum kind { UNKNOWN, PLAIN, TIMED };

/* What is known of a descriptor. A peer's family is 0 where it has not been asked for. */
struct known {
	_Atomic uint8_t kind;
	uint8_t priority;
	_Atomic uint8_t kernels; /* an enum option_kernels */
	_Atomic bool begun; /* the kernel has a part of a datagram (MSG_MORE), and gets the rest */
	_Atomic bool pretended; /* the kernel does not know of the clock: it had refused it */
	struct sock_txtime how;
	struct link_name name;
	struct sockaddr_storage peer;
};

static struct known fds[FDS_MAX];

static struct real functions;

__attribute__((constructor)) static void find_functions(void)
{
#define FIND(name) functions.name = (__typeof__(functions.name))dlsym(RTLD_NEXT, #name)
	FIND(sendmsg);
	FIND(recvmsg);
	FIND(sendmmsg);
	FIND(setsockopt);
	FIND(getsockopt);
	FIND(connect);
	FIND(bind);
	FIND(close);
	FIND(close_range);
	FIND(dup);
	FIND(dup2);
	FIND(dup3);
	FIND(fcntl);
#undef FIND
}

/* real may be asked for before constructors have run: by those of other libraries. */
const struct real *real(void)
{
	if (!functions.sendmsg) {
		find_functions();
	}
	return &functions;
}

static struct known *known_of(int fd)
{
	return fd >= 0 && fd < FDS_MAX ? &fds[fd] : NULL;
}

/* priority_of is a socket's priority as a slot has it. */
static uint8_t priority_of(int priority)
{
	return (unsigned int)priority > PRIORITY_MAX ? PRIORITY_MAX : (uint8_t)priority;
}

/* learn_timed asks the kernel about a socket that has transmission times. */
static void learn_timed(int fd, struct known *k, const struct sock_txtime *how)
{
	socklen_t bytes = sizeof(int);
	int priority = 0;

	(void)real()->getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &priority, &bytes);
	k->priority = priority_of(priority);
	k->kernels = option_kernels(fd);
	k->how = *how;
	k->kind = TIMED;
}

/* learn asks the kernel about a socket that came by exec, dup or SCM_RIGHTS. */
static void learn(int fd, struct known *k)
{
	struct sock_txtime txtime;
	socklen_t bytes = sizeof(txtime);

	if (real()->getsockopt(fd, SOL_SOCKET, SO_TXTIME, &txtime, &bytes) < 0 || !txtime.clockid) {
		k->kind = PLAIN;
		return;
	}
	learn_timed(fd, k, &txtime);
}

/* forget is called when a descriptor is to mean something else. */
static void forget(int fd)
{
	struct known *k = known_of(fd);

	if (!k || k->kind == UNKNOWN || link_borrowed()) {
		return;
	}
	if (k->kind == TIMED) {
		link_forget(&k->name);
	}
	memset(&k->peer, 0, sizeof(k->peer));
	k->pretended = false;
	k->priority = 0;
	k->kernels = OPTION_NONE;
	k->begun = false;
	k->kind = UNKNOWN;
}

/* aim writes where a message goes to: as it says, or to the socket's peer. */
static bool aim(int fd, struct known *k, const struct msghdr *message, struct wire_slot *slot)
{
	struct sockaddr_storage to = { 0 };
	socklen_t bytes = sizeof(k->peer);

	if (message->msg_name) {
		if (message->msg_namelen > sizeof(to)) {
			return false;
		}
		memcpy(&to, message->msg_name, message->msg_namelen);
		return message->msg_namelen >= message_address_least(to.ss_family) && message_address(&to, slot);
	}
	if (!k->peer.ss_family && getpeername(fd, (struct sockaddr *)&k->peer, &bytes) < 0) {
		return false;
	}
	return message_address(&k->peer, slot);
}

/* kernels says whether an option asks for what the daemon does not do of a packet to an address. */
static bool kernels(const struct known *k, const struct wire_slot *slot)
{
	return k->kernels == OPTION_ALL || (k->kernels == OPTION_GROUPS && message_to_group(slot));
}

/* whole says whether a message is one datagram, of which nothing is asked that the daemon does not do. */
static bool whole(int fd, int flags)
{
	struct known *k = known_of(fd);
	bool begun;

	if (!k || (!(flags & MSG_MORE) && !k->begun)) {
		return !(flags & ~FLAGS);
	}
	if (k->kind == UNKNOWN) {
		learn(fd, k);
	}
	begun = k->begun;
	k->begun = flags & MSG_MORE;
	return !begun && !(flags & ~FLAGS);
}

/* must_fail says what becomes of packets without a daemon: KTSN_FALLBACK=fail, or they go by the kernel. */
static bool must_fail(void)
{
	const char *fallback = secure_getenv("KTSN_FALLBACK");

	return fallback && strcmp(fallback, "fail") == 0;
}

/*
 * by_ring tries to send a message by the daemon. Returns the bytes sent, -1 with errno
 * set, or -2 for one that is the kernel's.
 */
static ssize_t by_ring(int fd, const struct msghdr *message)
{
	struct known *k = known_of(fd);
	struct wire_slot slot;
	int bytes, err, saved = errno;

	if (!k || message->msg_controllen == 0) {
		return -2;
	}
	if (k->kind == UNKNOWN) {
		learn(fd, k);
	}
	memset(&slot, 0, offsetof(struct wire_slot, payload));
	slot.priority = k->priority;
	if (!message_timed(message, &slot)) {
		errno = saved;
		return -2;
	}
	bytes = message_size(message);
	if (k->kind != TIMED || bytes < 0 || !aim(fd, k, message, &slot) || kernels(k, &slot)) {
		errno = saved;
		return -2;
	}
	slot.bytes = (uint16_t)bytes;
	err = link_send(fd, &k->name, &k->how, &slot, message->msg_iov, (int)message->msg_iovlen);
	if (err == -EDESTADDRREQ) {
		/* It has no port yet: the kernel gives it one when it first sends or is bound. */
		struct sockaddr_storage any = { 0 };
		socklen_t any_bytes = sizeof(any);

		if (getsockname(fd, (struct sockaddr *)&any, &any_bytes) == 0 && real()->bind(fd, (struct sockaddr *)&any, any_bytes) == 0) {
			err = link_send(fd, &k->name, &k->how, &slot, message->msg_iov, (int)message->msg_iovlen);
		}
	}
	errno = saved;
	if (!err) {
		return bytes;
	}
	if (err != -ENOBUFS && !must_fail()) {
		return -2;
	}
	errno = err == -ENOBUFS ? ENOBUFS : ENETDOWN;
	return -1;
}

/* by_kernel sends a message without a gate. Of a clock that it has refused the kernel would refuse the times, too. */
static ssize_t by_kernel(int fd, const struct msghdr *message, int flags)
{
	const struct known *k = known_of(fd);
	struct message_control control;
	struct msghdr untimed;

	if (k && k->pretended && message_without_time(&untimed, &control, message)) {
		return real()->sendmsg(fd, &untimed, flags);
	}
	return real()->sendmsg(fd, message, flags);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t sent = whole(fd, flags) ? by_ring(fd, message) : -2;

	return sent == -2 ? by_kernel(fd, message, flags) : sent;
}

EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags)
{
	for (unsigned int i = 0; i < count; i++) {
		ssize_t sent = sendmsg(fd, &messages[i].msg_hdr, flags);

		if (sent < 0) {
			return i > 0 ? (int)i : -1;
		}
		messages[i].msg_len = (unsigned int)sent;
	}
	return (int)count;
}

/* set_txtime has the kernel know, too; where that refuses CLOCK_TAI for want of CAP_NET_ADMIN, it need not. */
static int set_txtime(int fd, const struct sock_txtime *txtime)
{
	struct known *k = known_of(fd);
	int saved = errno;
	int err = real()->setsockopt(fd, SOL_SOCKET, SO_TXTIME, txtime, sizeof(*txtime));
	bool pretended = err < 0 && errno == EPERM && txtime->clockid == CLOCK_TAI && option_is_udp(fd);

	if ((err < 0 && !pretended) || !k) {
		return err;
	}
	forget(fd);
	k->pretended = pretended;
	learn_timed(fd, k, txtime);
	link_prepare(fd, &k->name, &k->how);
	errno = saved;
	return 0;
}

EXPORT int setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
	struct known *k = known_of(fd);
	int err, saved = errno;

	if (level == SOL_SOCKET && option == SO_TXTIME && value && bytes == sizeof(struct sock_txtime)) {
		return set_txtime(fd, value);
	}
	err = real()->setsockopt(fd, level, option, value, bytes);
	if (!err && k && level == SOL_SOCKET && option == SO_PRIORITY) {
		k->priority = priority_of(*(const int *)value);
	}
	if (!err && k && k->kind == TIMED && (level == IPPROTO_IP || level == IPPROTO_IPV6 || level == IPPROTO_UDP)) {
		k->kernels = option_kernels(fd);
		errno = saved;
	}
	return err;
}

EXPORT int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict bytes)
{
	struct known *k = known_of(fd);

	if (level == SOL_SOCKET && option == SO_TXTIME && k && k->pretended && value && bytes &&
	    *bytes >= sizeof(struct sock_txtime)) {
		*(struct sock_txtime *)value = k->how;
		*bytes = sizeof(struct sock_txtime);
		return 0;
	}
	return real()->getsockopt(fd, level, option, value, bytes);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	const struct known *k = known_of(fd);
	struct wire_slot error;

	if (flags & MSG_ERRQUEUE && k && k->kind == TIMED && link_error(&k->name, &error) && error.bytes <= WIRE_PAYLOAD_MAX) {
		return message_error(message, &error);
	}
	return real()->recvmsg(fd, message, flags);
}

/* prepare shows a socket that may have a port now to the daemon. */
static void prepare(int fd)
{
	struct known *k = known_of(fd);
	int saved = errno;

	if (k && k->kind == TIMED) {
		link_prepare(fd, &k->name, &k->how);
		errno = saved;
	}
}

EXPORT int connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
	struct known *k = known_of(fd);
	int err = real()->connect(fd, to, bytes);

	if (k && k->peer.ss_family) {
		memset(&k->peer, 0, sizeof(k->peer));
	}
	if (!err && k && k->kind == TIMED && !link_borrowed()) {
		link_forget(&k->name); /* it sends from another address now, which the daemon reads anew */
	}
	prepare(fd);
	return err;
}

EXPORT int bind(int fd, const struct sockaddr *at, socklen_t bytes)
{
	const struct timespec moment = { .tv_nsec = HELD_AGAIN_NS };
	int saved = errno, err = real()->bind(fd, at, bytes);

	while (err < 0 && errno == EADDRINUSE && option_is_udp(fd) && link_holds()) {
		nanosleep(&moment, NULL);
		err = real()->bind(fd, at, bytes);
		errno = err ? errno : saved;
	}

	prepare(fd);
	return err;
}

EXPORT int close(int fd)
{
	link_closing(fd);
	forget(fd);
	return real()->close(fd);
}

EXPORT int close_range(unsigned int first, unsigned int last, int flags)
{
	for (unsigned int fd = first; flags == 0 && fd <= last && fd < FDS_MAX; fd++) {
		link_closing((int)fd);
		forget((int)fd);
	}
	return real()->close_range(first, last, flags);
}

/* copied hands on what the kernel does not know of a socket. */
static int copied(int from, int to)
{
	struct known *k = known_of(from), *copy = known_of(to);

	if (to >= 0 && to != from && copy) {
		forget(to);
		if (k && k->pretended && !link_borrowed()) {
			copy->how = k->how;
			copy->priority = k->priority;
			copy->kernels = k->kernels;
			copy->pretended = true;
			copy->kind = TIMED;
		}
	}
	return to;
}

EXPORT int dup(int fd)
{
	return copied(fd, real()->dup(fd));
}

EXPORT int dup2(int fd, int to)
{
	if (to != fd) {
		link_closing(to);
	}
	return copied(fd, real()->dup2(fd, to));
}

EXPORT int dup3(int fd, int to, int flags)
{
	if (to != fd) {
		link_closing(to);
	}
	return copied(fd, real()->dup3(fd, to, flags));
}

/* fcntl's argument is an int or a pointer; both fit a long. */
EXPORT int fcntl(int fd, int command, ...)
{
	va_list arguments;
	long argument;
	int got;

	va_start(arguments, command);
	argument = va_arg(arguments, long);
	va_end(arguments);
	got = real()->fcntl(fd, command, argument);
	return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(fd, got) : got;
}

/* What programs call that are built for large files. */
EXPORT int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));
