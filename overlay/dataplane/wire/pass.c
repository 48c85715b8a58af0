#include "pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int pass_send(int sock, const void *data, size_t bytes, int fd, int flags)
{
	struct iovec part = { .iov_base = (void *)data, .iov_len = bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(fd))];
	} control = { 0 };

	if (fd >= 0) {
		struct cmsghdr *c = &control.header;

		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &message, flags | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int pass_receive_all(int sock, void *data, size_t bytes, struct passed *passed, int flags)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(passed->fd))];
	} control;
	struct iovec part = { .iov_base = data, .iov_len = bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t got;

	passed->count = 0;
	do {
		got = recvmsg(sock, &message, flags | MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0) {
		return -errno;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			passed->count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
			memcpy(passed->fd, CMSG_DATA(c), (size_t)passed->count * sizeof(int));
		}
	}
	if (got == (ssize_t)bytes && !(message.msg_flags & MSG_TRUNC)) {
		return 0;
	}
	return got == 0 ? -ECONNRESET : -EBADMSG;
}

int pass_receive(int sock, void *data, size_t bytes, int *fd, int flags)
{
	struct passed passed;
	int err = pass_receive_all(sock, data, bytes, &passed, flags);

	*fd = -1;
	if (!err && passed.count == 1) {
		*fd = passed.fd[0];
		return 0;
	}
	for (int i = 0; i < passed.count; i++) {
		close(passed.fd[i]);
	}
	return err;
}
