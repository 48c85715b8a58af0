#include "attachment.h"

#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

void attachment_init(struct attachment *a)
{
	*a = (struct attachment){ .listener = -1, .asked = -1 };
}

/* give has a descriptor be closed that is watched: it stays open until it is its turn. */
static void give(struct attachment *a, int epoll, int fd)
{
	epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
	closer_close(a->closer, fd);
}

void attachment_end(struct attachment *a, int epoll)
{
	if (a->listener >= 0) {
		give(a, epoll, a->listener); /* with what those have passed that were not accepted */
		unlink(a->who.path);
	}
	if (a->asked >= 0) {
		give(a, epoll, a->asked); /* the kernel waits until no packet is under way to it */
	}
	if (a->closer) {
		closer_end(a->closer);
	}
	a->listener = a->asked = -1;
	a->closer = NULL;
}
