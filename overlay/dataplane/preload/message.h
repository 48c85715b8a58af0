/* What a program's message says, as a slot of the ring has it, and an error as the kernel tells it. No call is made. */
#ifndef PRELOAD_MESSAGE_H
#define PRELOAD_MESSAGE_H

#include <stdbool.h>
#include <sys/socket.h>

#include "../wire/wire.h"

#define PRIORITY_MAX 15
#define PRIORITY_FREE_MAX 6 /* what anybody may set (socket(7), SO_PRIORITY) */

/* message_address writes where a packet goes to. Returns false for what is no address of IP. */
bool message_address(const struct sockaddr_storage *to, struct wire_slot *slot);

/* message_address_least is how long the kernel wants an address to be. */
socklen_t message_address_least(sa_family_t family);

/* message_to_group says whether it goes to a group. */
bool message_to_group(const struct wire_slot *slot);

/* message_timed reads the control data. Returns false unless it is a transmission time, with a priority at most. */
bool message_timed(const struct msghdr *message, struct wire_slot *slot);

/* message_size returns the bytes of a message, or -1 for more than a slot holds. */
int message_size(const struct msghdr *message);

/* Room for control data, aligned as that is; there may be no more where a time is taken out. */
struct message_control {
	union {
		struct cmsghdr header;
		char space[1024];
	};
};

/*
 * message_without_time writes a message that is the same but for its transmission time, and
 * for a priority that takes the capability without which the kernel has refused the clock.
 * Returns false where it has no time, or does not fit: then nothing is to be used.
 */
bool message_without_time(struct msghdr *untimed, struct message_control *control, const struct msghdr *message);

/* message_error writes an error as the kernel's queue has it (SO_EE_ORIGIN_TXTIME). Returns the payload's bytes. */
ssize_t message_error(struct msghdr *message, const struct wire_slot *error);

#endif
