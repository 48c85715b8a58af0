#include "attachment.h"

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
		a->listener = -1;
	}
	if (a->asked >= 0) {
		close(a->asked);
		a->asked = -1;
	}
}
