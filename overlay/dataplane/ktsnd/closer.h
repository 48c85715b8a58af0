/*
 * Closes what programs have passed, on a thread of its own, since the daemon must not wait:
 * closing may (a TCP socket that lingers, a member of a group, a file of FUSE). Each
 * attachment has one, so that none waits for what the programs of another have passed.
 */
#ifndef KTSND_CLOSER_H
#define KTSND_CLOSER_H

#include <sched.h>

struct closer;

/* closer_new starts one on these cores. Returns 0 or -errno. */
int closer_new(struct closer **made, const cpu_set_t *cpus);

/* closer_end has it close what it was given, and be gone; nobody waits for that. */
void closer_end(struct closer *c);

/* closer_close gives it a descriptor, without waiting. */
void closer_close(struct closer *c, int fd);

/* closer_waiting returns how many are not closed yet. */
int closer_waiting(struct closer *c);

#endif
