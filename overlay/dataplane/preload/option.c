#include "option.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include "real.h"

/* What frames of ktsnd have one value of, whatever the socket's is. */
static const struct {
	int level, name;
	enum option_kernels kernels;
} options[] = {
	{ IPPROTO_UDP, UDP_CORK, OPTION_ALL },
	{ IPPROTO_UDP, UDP_SEGMENT, OPTION_ALL },
	{ IPPROTO_IP, IP_TTL, OPTION_ALL },
	{ IPPROTO_IP, IP_TOS, OPTION_ALL },
	{ IPPROTO_IP, IP_MULTICAST_TTL, OPTION_GROUPS },
	{ IPPROTO_IPV6, IPV6_UNICAST_HOPS, OPTION_ALL },
	{ IPPROTO_IPV6, IPV6_TCLASS, OPTION_ALL },
	{ IPPROTO_IPV6, IPV6_MULTICAST_HOPS, OPTION_GROUPS },
};

/* value returns an option, or a number that none has where the socket has no such. */
static int value(int fd, int level, int name)
{
	int is = 0;
	socklen_t bytes = sizeof(is);

	return real()->getsockopt(fd, level, name, &is, &bytes) < 0 ? -2 : is;
}

enum option_kernels option_kernels(int fd)
{
	enum option_kernels most = OPTION_NONE;
	int fresh = socket(value(fd, SOL_SOCKET, SO_DOMAIN), SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP);

	for (size_t i = 0; fresh >= 0 && i < sizeof(options) / sizeof(*options); i++) {
		if (options[i].kernels > most && value(fd, options[i].level, options[i].name) != value(fresh, options[i].level, options[i].name)) {
			most = options[i].kernels;
		}
	}
	if (fresh >= 0) {
		real()->close(fresh);
	}
	return most;
}

bool option_is_udp(int fd)
{
	return value(fd, SOL_SOCKET, SO_TYPE) == SOCK_DGRAM && value(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_UDP;
}
