#include "closer.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define FDS_MAX (1 << 17) /* twice what all programs may have passed; those above are closed in place */
#define STACK_BYTES (256 * 1024)

enum { NONE = -1 };

/* A list of descriptors goes from each to the one given before it. None is in two lists: it is open. */
static _Atomic int before[FDS_MAX];

struct closer {
	_Atomic int last; /* given, of those not taken from here yet */
	_Atomic int waiting;
	_Atomic bool ended; /* nothing more is given */
	_Atomic int holders; /* the thread, and who gives: the last to let go frees it */
	sem_t given;
};

static void let_go(struct closer *c)
{
	if (atomic_fetch_sub(&c->holders, 1) == 1) {
		sem_destroy(&c->given);
		free(c);
	}
}

static void close_all(struct closer *c)
{
	int fd = atomic_exchange(&c->last, NONE);

	while (fd != NONE) {
		int next = atomic_load_explicit(&before[fd], memory_order_relaxed);

		close(fd); /* from here on the number may be another's, and be given again */
		atomic_fetch_sub(&c->waiting, 1);
		fd = next;
	}
}

static void *run(void *closer)
{
	struct closer *c = closer;
	bool ended = false;

	while (!ended) {
		while (sem_wait(&c->given) < 0) {
		}
		ended = atomic_load(&c->ended);
		close_all(c);
	}
	let_go(c);
	return NULL;
}

/* start has a thread run that nobody joins. Returns 0 or an errno. */
static int start(struct closer *c, const cpu_set_t *cpus)
{
	pthread_attr_t how;
	pthread_t thread;
	int err = pthread_attr_init(&how);

	if (err) {
		return err;
	}
	pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&how, STACK_BYTES);
	pthread_attr_setaffinity_np(&how, sizeof(*cpus), cpus);
	err = pthread_create(&thread, &how, run, c);
	pthread_attr_destroy(&how);
	return err;
}

int closer_new(struct closer **made, const cpu_set_t *cpus)
{
	struct closer *c = calloc(1, sizeof(*c));
	int err;

	if (!c) {
		return -ENOMEM;
	}
	c->last = NONE;
	c->holders = 2;
	sem_init(&c->given, 0, 0);
	err = start(c, cpus);
	if (err) {
		c->holders = 1;
		let_go(c);
		return -err;
	}
	*made = c;
	return 0;
}

void closer_end(struct closer *c)
{
	atomic_store(&c->ended, true);
	sem_post(&c->given); /* the thread may be at its end already, woken by what was given last */
	let_go(c);
}

void closer_close(struct closer *c, int fd)
{
	int last = atomic_load(&c->last);

	if (fd >= FDS_MAX) {
		close(fd);
		return;
	}
	atomic_fetch_add(&c->waiting, 1);
	do {
		atomic_store_explicit(&before[fd], last, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak(&c->last, &last, fd));
	sem_post(&c->given);
}

int closer_waiting(struct closer *c)
{
	return atomic_load(&c->waiting);
}
