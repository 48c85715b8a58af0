#include "attachment.h"

#include <stddef.h>
#include <unistd.h>

void attachment_init(struct attachment *a)
{
	*a = (struct attachment){ .listener = -1, .asked = -1 };
}

void attachment_end(struct attachment *a)
{
	if (a->listener >= 0) {
		close(a->listener);
		unlink(a->who.path);
	}
	if (a->asked >= 0) {
		close(a->asked);
	}
	if (a->closer) {
		closer_end(a->closer);
	}
	a->listener = a->asked = -1;
	a->closer = NULL;
}
