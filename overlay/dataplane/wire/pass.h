/* Messages over unix sockets that carry at most one file descriptor (unix(7), SCM_RIGHTS). */
#ifndef WIRE_PASS_H
#define WIRE_PASS_H

#include <stddef.h>

/* pass_send sends a message, with a descriptor unless fd is -1. Returns 0 or -errno. */
int pass_send(int sock, const void *data, size_t bytes, int fd, int flags);

/*
 * pass_receive takes a message of exactly so many bytes. *fd is what came with it, or
 * -1. Returns 0, -ECONNRESET at the end, -EBADMSG for another size, or -errno.
 */
int pass_receive(int sock, void *data, size_t bytes, int *fd, int flags);

#endif
