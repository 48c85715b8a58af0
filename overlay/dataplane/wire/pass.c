#include "pass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(sizeof(int))];
};

int pass_send(int sock, const void *data, size_t bytes, int fd, int flags)
{
	struct iovec part = { .iov_base = (void *)data, .iov_len = bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	union control control = { 0 };

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

int pass_receive(int sock, void *data, size_t bytes, int *fd, int flags)
{
	struct iovec part = { .iov_base = data, .iov_len = bytes };
	union control control = { 0 };
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got;

	*fd = -1;
	do {
		got = recvmsg(sock, &message, flags | MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0) {
		return -errno;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
			memcpy(fd, CMSG_DATA(c), sizeof(*fd));
		}
	}
	if (got == (ssize_t)bytes && !(message.msg_flags & MSG_TRUNC)) {
		return 0;
	}
	if (*fd >= 0) {
		close(*fd);
		*fd = -1;
	}
	return got == 0 ? -ECONNRESET : -EBADMSG;
}
