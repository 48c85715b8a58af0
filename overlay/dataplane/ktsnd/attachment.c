#include "attachment.h"

#include <unistd.h>

void attachment_end(struct attachment *a)
{
	if (a->listener >= 0) {
		close(a->listener);
		unlink(a->who.path);
		a->listener = -1;
	}
}
