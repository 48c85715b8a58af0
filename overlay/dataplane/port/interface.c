#include "interface.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int interface_of(const char *name, uint8_t mac[6], int *index)
{
	struct ifreq request = { 0 };
	int sock, err = 0;

	if (strlen(name) >= sizeof(request.ifr_name)) {
		return -ENODEV;
	}
	strcpy(request.ifr_name, name);
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0) {
		return -errno;
	}
	if (ioctl(sock, SIOCGIFHWADDR, &request) < 0) {
		err = -errno;
	} else {
		memcpy(mac, request.ifr_hwaddr.sa_data, 6);
	}
	if (!err && index && ioctl(sock, SIOCGIFINDEX, &request) < 0) {
		err = -errno;
	} else if (!err && index) {
		*index = request.ifr_ifindex;
	}
	close(sock);
	return err;
}
