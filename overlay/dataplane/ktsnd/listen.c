#include "listen.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int listen_at(const char *path, mode_t mode, int backlog)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct stat left;
	int sock, err;

	if (strlen(path) >= sizeof(at.sun_path)) {
		return -ENAMETOOLONG;
	}
	strcpy(at.sun_path, path);
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0) {
		return -errno;
	}
	if (connect(sock, (struct sockaddr *)&at, sizeof(at)) == 0) {
		close(sock);
		return -EADDRINUSE;
	}
	/* Of a file that is no socket the kernel says so, too. */
	if (errno == ECONNREFUSED && lstat(path, &left) == 0 && S_ISSOCK(left.st_mode)) {
		unlink(path);
	}
	if (bind(sock, (struct sockaddr *)&at, sizeof(at)) < 0 || chmod(path, mode) < 0 ||
	    listen(sock, backlog) < 0) {
		err = -errno;
		close(sock);
		return err;
	}
	return sock;
}
