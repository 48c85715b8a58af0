#include "link.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../wire/pass.h"
#include "real.h"

#define RETRY_NS 20000000  /* from one try to connect to the next */
#define QUIET_NS 1000000000 /* from one that got no answer, or a refusal, to the next */
#define SILENT_NS 20000000 /* without a sign of life the connection is looked at */
#define WAIT_US 200000     /* for an answer of the daemon */
#define HELD_NS 1000000000 /* after CLOSE its copy may hold a port: as long as a busy machine has it stand still */
#define LINK_FD_LEAST 512  /* out of the way of programs that close the first descriptors */

/* The link; lock guards all of it. */
static struct {
	pthread_mutex_t lock;
	int sock;
	pid_t owner; /* whose memory this is */
	bool parents; /* since a fork it is the link of the parent, until it is unlocked */
	uint32_t generation, head, error_tail;
	uint64_t taken; /* bit e: error slot e was taken before one in front of it */
	uint64_t shown[WIRE_SOCKETS / 64]; /* bit s: the daemon's socket s is open */
	struct wire_ring *ring;
	int64_t retry_ns, closed_ns; /* closed_ns: of the last CLOSE; 0: none */
} self = { .lock = PTHREAD_MUTEX_INITIALIZER, .sock = -1, .generation = 1 };

/* inside is set while a thread holds the lock: a signal handler that sends then goes by the kernel. */
static _Thread_local volatile bool inside;

static int64_t monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* detach_locked gives the link up; sockets are to be shown anew. */
static void detach_locked(void)
{
	if (self.sock >= 0) {
		real()->close(self.sock);
		self.sock = -1;
	}
	if (self.ring) {
		munmap(self.ring, sizeof(*self.ring));
		self.ring = NULL;
	}
	self.generation++;
}

/* own_locked has the link of a child of fork be its own: it leaves the ring to the parent. */
static void own_locked(void)
{
	detach_locked();
	self.parents = false;
	self.retry_ns = 0;
	self.owner = getpid();
}

/*
 * lock begins what is done with the link, in which the thread is not cancelled: nobody would
 * unlock then. Returns false where it has begun already, before a signal; else *cancel is for
 * unlock.
 */
static bool lock(int *cancel)
{
	if (inside) {
		return false;
	}
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	inside = true;
	pthread_mutex_lock(&self.lock);
	return true;
}

static void unlock(int cancel)
{
	if (self.parents) {
		own_locked();
	}
	pthread_mutex_unlock(&self.lock);
	inside = false;
	pthread_setcancelstate(cancel, NULL);
}

/* Of this thread's forks: whether it could be cancelled before, and how many signal handlers do while the link is used. */
static _Thread_local int fork_cancel, forks_inside;

static void before_fork(void)
{
	int cancel;

	if (!lock(&cancel)) {
		forks_inside++;
		return;
	}
	fork_cancel = cancel;
}

static void after_fork(void)
{
	if (forks_inside > 0) {
		forks_inside--;
		return;
	}
	unlock(fork_cancel);
}

/* after_fork_in_child of a signal handler, that came while the link is used, has that end first. */
static void after_fork_in_child(void)
{
	self.parents = true;
	after_fork();
}

__attribute__((constructor)) static void start(void)
{
	self.owner = getpid();
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

bool link_borrowed(void)
{
	return self.owner && self.owner != getpid();
}

/* dial connects to the daemon's path. Returns a descriptor or -errno. */
static int dial(void)
{
	const char *path = secure_getenv("KTSN_SOCKET");
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct timeval wait = { .tv_usec = WAIT_US };
	int sock, high, err;

	path = path ? path : WIRE_PATH;
	if (strlen(path) >= sizeof(at.sun_path)) {
		return -ENAMETOOLONG;
	}
	strcpy(at.sun_path, path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (sock < 0) {
		return -errno;
	}
	high = real()->fcntl(sock, F_DUPFD_CLOEXEC, LINK_FD_LEAST);
	if (high >= 0) {
		real()->close(sock);
		sock = high;
	}
	if (real()->setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
	    real()->setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
	    real()->connect(sock, (struct sockaddr *)&at, sizeof(at)) < 0) {
		err = -errno;
		real()->close(sock);
		return err;
	}
	return sock;
}

/* failed_locked gives the link up after an error, and says when to try again: later where that took long already. */
static int failed_locked(int err)
{
	detach_locked();
	self.retry_ns = monotonic_ns() + (err == -EAGAIN ? QUIET_NS : RETRY_NS);
	return err;
}

/* attach_locked takes the ring that the daemon passes. Returns 0 or -errno. */
static int attach_locked(void)
{
	struct wire_message welcome;
	void *ring;
	int fd, err;

	if (monotonic_ns() < self.retry_ns) {
		return -EHOSTDOWN;
	}
	self.sock = dial();
	if (self.sock < 0) {
		err = self.sock;
		self.sock = -1;
		return failed_locked(err);
	}
	err = pass_receive(self.sock, &welcome, sizeof(welcome), &fd, 0);
	if (err || fd < 0 || welcome.type != WIRE_WELCOME) {
		return failed_locked(err ? err : -EPROTO);
	}
	ring = mmap(NULL, sizeof(*self.ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	real()->close(fd);
	if (ring == MAP_FAILED) {
		return failed_locked(-ENOMEM);
	}
	self.ring = ring;
	if (self.ring->magic != WIRE_MAGIC || self.ring->version != WIRE_VERSION || self.ring->slots != WIRE_SLOTS ||
	    self.ring->slot_bytes != sizeof(struct wire_slot)) {
		return failed_locked(-EPROTO);
	}
	self.head = self.error_tail = 0;
	self.taken = 0;
	memset(self.shown, 0, sizeof(self.shown));
	return 0;
}

/* gone_locked says whether the daemon has ended. It is asked for only when it is silent. */
static bool gone_locked(void)
{
	char byte;
	ssize_t got;

	if (monotonic_ns() - atomic_load_explicit(&self.ring->alive_ns, memory_order_relaxed) < SILENT_NS) {
		return false;
	}
	got = recv(self.sock, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
	return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

static bool shown_locked(uint32_t number)
{
	return self.shown[number / 64 % (WIRE_SOCKETS / 64)] >> number % 64 & 1;
}

/* release_locked gives the error slots back that are taken, up to the first that is not. */
static void release_locked(uint32_t head)
{
	while (self.error_tail != head && self.taken >> self.error_tail % WIRE_ERRORS & 1) {
		self.taken &= ~(UINT64_C(1) << self.error_tail % WIRE_ERRORS);
		self.error_tail++;
	}
	atomic_store_explicit(&self.ring->error_tail, self.error_tail, memory_order_release);
}

/* drop_locked takes the errors of sockets that are closed: nobody asks for them, and others want the room. */
static void drop_locked(void)
{
	uint32_t head = atomic_load_explicit(&self.ring->error_head, memory_order_acquire);

	for (uint32_t at = self.error_tail; at != head; at++) {
		if (!shown_locked(self.ring->error[at % WIRE_ERRORS].socket)) {
			self.taken |= UINT64_C(1) << at % WIRE_ERRORS;
		}
	}
	release_locked(head);
}

/* show_locked passes a socket to the daemon, which names it. Returns 0 or -errno. */
static int show_locked(int fd, struct link_name *name, const struct sock_txtime *how)
{
	struct wire_message m = { .type = WIRE_OPEN, .clock = how->clockid, .flags = how->flags };
	int extra, err;

	if (name->refused == self.generation && monotonic_ns() < name->again_ns) {
		return -EMFILE;
	}
	err = pass_send(self.sock, &m, sizeof(m), fd, 0);
	if (!err) {
		err = pass_receive(self.sock, &m, sizeof(m), &extra, 0);
	}
	if (err || m.type != WIRE_OPENED || m.socket >= WIRE_SOCKETS) {
		return failed_locked(err ? err : -EPROTO);
	}
	if (m.error && m.error != -EDESTADDRREQ) { /* which will be otherwise as soon as it is bound */
		name->refused = self.generation;
		name->again_ns = monotonic_ns() + QUIET_NS;
	}
	if (m.error) {
		return m.error;
	}
	drop_locked(); /* those of an earlier socket of that number, of which none comes any more */
	self.shown[m.socket / 64] |= UINT64_C(1) << m.socket % 64;
	*name = (struct link_name){ .generation = self.generation, .number = m.socket };
	return 0;
}

static void gather(uint8_t *to, const struct iovec *iov, int parts)
{
	for (int i = 0; i < parts; i++) {
		memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
}

/* ready_locked sees that there is a ring, and that the daemon knows the socket. Returns 0 or -errno. */
static int ready_locked(int fd, struct link_name *name, const struct sock_txtime *how)
{
	int err;

	if (self.ring && gone_locked()) {
		detach_locked();
	}
	err = self.ring ? 0 : attach_locked();
	return err || name->generation == self.generation ? err : show_locked(fd, name, how);
}

static int send_locked(int fd, struct link_name *name, const struct sock_txtime *how, const struct wire_slot *header,
		       const struct iovec *iov, int parts)
{
	struct wire_slot *slot;
	int err = ready_locked(fd, name, how);

	if (err) {
		return err;
	}
	if (self.head - atomic_load_explicit(&self.ring->tail, memory_order_acquire) >= WIRE_SLOTS) {
		return -ENOBUFS;
	}
	slot = &self.ring->slot[self.head % WIRE_SLOTS];
	memcpy(slot, header, offsetof(struct wire_slot, payload));
	slot->socket = name->number;
	gather(slot->payload, iov, parts);
	atomic_store_explicit(&self.ring->head, ++self.head, memory_order_release);
	return 0;
}

int link_send(int fd, struct link_name *name, const struct sock_txtime *how, const struct wire_slot *header,
	      const struct iovec *iov, int parts)
{
	int err, cancel;

	if (!lock(&cancel)) {
		return -EDEADLK;
	}
	err = send_locked(fd, name, how, header, iov, parts);
	unlock(cancel);
	return err;
}

void link_prepare(int fd, struct link_name *name, const struct sock_txtime *how)
{
	int cancel;

	if (!lock(&cancel)) {
		return;
	}
	(void)ready_locked(fd, name, how);
	unlock(cancel);
}

/* error_locked copies the first error of a socket, which need not be the first of all. */
static bool error_locked(const struct link_name *name, struct wire_slot *error)
{
	uint32_t head, at;

	drop_locked();
	head = atomic_load_explicit(&self.ring->error_head, memory_order_acquire);
	at = self.error_tail;
	while (at != head && (self.taken >> at % WIRE_ERRORS & 1 || self.ring->error[at % WIRE_ERRORS].socket != name->number)) {
		at++;
	}
	if (at == head) {
		return false;
	}
	*error = self.ring->error[at % WIRE_ERRORS];
	self.taken |= UINT64_C(1) << at % WIRE_ERRORS;
	release_locked(head);
	return true;
}

bool link_error(const struct link_name *name, struct wire_slot *error)
{
	bool found;
	int cancel;

	if (!lock(&cancel)) {
		return false;
	}
	found = self.ring && name->generation == self.generation && error_locked(name, error);
	unlock(cancel);
	return found;
}

void link_forget(struct link_name *name)
{
	struct wire_message m = { .type = WIRE_CLOSE, .socket = name->number };
	int cancel;

	if (!lock(&cancel)) {
		return;
	}
	if (self.sock >= 0 && name->generation == self.generation) {
		/* A daemon that cannot be told is one that has gone, and knows nothing of it. */
		(void)pass_send(self.sock, &m, sizeof(m), -1, MSG_DONTWAIT);
		self.closed_ns = monotonic_ns();
		self.shown[name->number / 64] &= ~(UINT64_C(1) << name->number % 64);
		drop_locked();
	}
	*name = (struct link_name){ 0 };
	unlock(cancel);
}

bool link_holds(void)
{
	bool holds;
	int cancel;

	if (!lock(&cancel)) {
		return false;
	}
	holds = self.closed_ns && monotonic_ns() - self.closed_ns < HELD_NS;
	unlock(cancel);
	return holds;
}

void link_closing(int fd)
{
	int cancel;

	if (fd != self.sock || link_borrowed() || !lock(&cancel)) {
		return;
	}
	detach_locked();
	unlock(cancel);
}
