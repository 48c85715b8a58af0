/* Unix sockets that wait for connections at a path. */
#ifndef KTSND_LISTEN_H
#define KTSND_LISTEN_H

#include <sys/types.h>

/*
 * listen_at makes one of SOCK_SEQPACKET that does not block, in the place of one that a
 * program which was killed has left. Returns it, -EADDRINUSE where one is listened at,
 * or -errno.
 */
int listen_at(const char *path, mode_t mode, int backlog);

#endif
