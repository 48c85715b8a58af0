/* Messages over unix sockets that carry file descriptors (unix(7), SCM_RIGHTS). */
#ifndef WIRE_PASS_H
#define WIRE_PASS_H

#include <stddef.h>

#define PASS_MAX 253 /* the kernel's SCM_MAX_FD: no message has more */

/* What came with a message; it is the receiver's to close. */
struct passed {
	int count;
	int fd[PASS_MAX];
};

/* pass_send sends a message, with a descriptor unless fd is -1. Returns 0 or -errno. */
int pass_send(int sock, const void *data, size_t bytes, int fd, int flags);

/*
 * pass_receive_all takes a message of exactly so many bytes. Returns 0, -ECONNRESET at the
 * end, -EBADMSG for another size, or -errno: also then there may be descriptors.
 */
int pass_receive_all(int sock, void *data, size_t bytes, struct passed *passed, int flags);

/* pass_receive does so with a message that is to have one at most: *fd, or -1. All else is closed. */
int pass_receive(int sock, void *data, size_t bytes, int *fd, int flags);

#endif
