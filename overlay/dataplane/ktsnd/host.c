#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static void warn(const char *what)
{
	fprintf(stderr, "ktsnd: warning: %s: %s\n", what, strerror(errno));
}

/* raise_files has room for the sockets of all clients; up to its maximum anybody may. */
static void raise_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

void host_settle(int cpu)
{
	static const int32_t none_us;
	cpu_set_t cpus;
	int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC); /* held until it ends */

	if (fd < 0 || write(fd, &none_us, sizeof(none_us)) < 0) {
		warn("cores may sleep: /dev/cpu_dma_latency");
	}
	raise_files();
	/* What is mapped later, the rings, is locked as it is used: all at once would take a millisecond. */
	if (mlockall(MCL_CURRENT) < 0 || mlockall(MCL_FUTURE | MCL_ONFAULT) < 0) {
		warn("memory may be swapped");
	}
	if (cpu < 0) {
		return;
	}
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) < 0) {
		warn("it keeps to no core");
	}
}

void host_drop(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3];

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capget, &header, kept) < 0) {
		warn("it keeps its capabilities");
		return;
	}
	kept[0].permitted &= UINT32_C(1) << CAP_IPC_LOCK;
	kept[0].effective = kept[0].permitted;
	kept[0].inheritable = kept[1].effective = kept[1].permitted = kept[1].inheritable = 0;
	if (syscall(SYS_capset, &header, kept) < 0) {
		warn("it keeps its capabilities");
	}
}

void host_ready(void)
{
	static const char ready[] = "READY=1";
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t bytes = path ? strlen(path) : 0;
	int sock;

	if (bytes == 0 || bytes >= sizeof(at.sun_path)) {
		return;
	}
	memcpy(at.sun_path, path, bytes);
	if (path[0] == '@') { /* an abstract name */
		at.sun_path[0] = 0;
	}
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0 || sendto(sock, ready, sizeof(ready) - 1, MSG_NOSIGNAL, (struct sockaddr *)&at,
			       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes)) < 0) {
		warn("systemd is not told that it is ready");
	}
	if (sock >= 0) {
		close(sock);
	}
}
