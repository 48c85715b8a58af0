#include "message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

bool message_address(const struct sockaddr_storage *to, struct wire_slot *slot)
{
	if (to->ss_family == AF_INET) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)to;

		slot->to[10] = slot->to[11] = 0xff;
		memcpy(slot->to + 12, &in->sin_addr, 4);
		slot->to_port = ntohs(in->sin_port);
		return true;
	}
	if (to->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)to;

		memcpy(slot->to, &in6->sin6_addr, 16);
		slot->to_port = ntohs(in6->sin6_port);
		return true;
	}
	return false;
}

socklen_t message_address_least(sa_family_t family)
{
	return family == AF_INET6 ? offsetof(struct sockaddr_in6, sin6_scope_id) : sizeof(struct sockaddr_in);
}

bool message_to_group(const struct wire_slot *slot)
{
	static const uint8_t ipv4[12] = { [10] = 0xff, 0xff };

	return slot->to[0] == 0xff || (memcmp(slot->to, ipv4, sizeof(ipv4)) == 0 && slot->to[12] >> 4 == 0xe);
}

/* within says whether control data lies within what the message says that there is: else the kernel refuses it. */
static bool within(const struct msghdr *message, const struct cmsghdr *c)
{
	size_t left = message->msg_controllen - (size_t)((const char *)c - (const char *)message->msg_control);

	return c->cmsg_len >= sizeof(*c) && c->cmsg_len <= left;
}

bool message_timed(const struct msghdr *message, struct wire_slot *slot)
{
	bool found = false;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR((struct msghdr *)message, c)) {
		uint32_t priority;

		if (!within(message, c)) {
			return false;
		}
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_PRIORITY && c->cmsg_len == CMSG_LEN(sizeof(priority))) {
			memcpy(&priority, CMSG_DATA(c), sizeof(priority));
			slot->priority = priority > PRIORITY_MAX ? PRIORITY_MAX : (uint8_t)priority;
			continue;
		}
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TXTIME || c->cmsg_len != CMSG_LEN(sizeof(slot->txtime_ns))) {
			return false;
		}
		memcpy(&slot->txtime_ns, CMSG_DATA(c), sizeof(slot->txtime_ns));
		found = true;
	}
	return found;
}

int message_size(const struct msghdr *message)
{
	size_t bytes = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++) {
		bytes += message->msg_iov[i].iov_len;
		if (message->msg_iov[i].iov_len > WIRE_PAYLOAD_MAX || bytes > WIRE_PAYLOAD_MAX) {
			return -1;
		}
	}
	return (int)bytes;
}

/* free_of_charge says whether the kernel takes control data from a program without CAP_NET_ADMIN. */
static bool free_of_charge(struct cmsghdr *c)
{
	uint32_t priority = 0;

	if (c->cmsg_level != SOL_SOCKET) {
		return true;
	}
	if (c->cmsg_type == SO_PRIORITY && c->cmsg_len == CMSG_LEN(sizeof(priority))) {
		memcpy(&priority, CMSG_DATA(c), sizeof(priority));
	}
	return priority <= PRIORITY_FREE_MAX && (c->cmsg_type != SCM_TXTIME || c->cmsg_len != CMSG_LEN(sizeof(uint64_t)));
}

bool message_without_time(struct msghdr *untimed, struct message_control *control, const struct msghdr *message)
{
	size_t used = 0;
	bool timed = false;

	if (message->msg_controllen > sizeof(control->space)) {
		return false;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR((struct msghdr *)message, c)) {
		if (!within(message, c)) {
			return false;
		}
		if (free_of_charge(c)) {
			memcpy(control->space + used, c, c->cmsg_len);
			used += CMSG_ALIGN(c->cmsg_len);
		} else {
			timed |= c->cmsg_type == SCM_TXTIME;
		}
	}
	*untimed = *message;
	untimed->msg_control = used > 0 ? control->space : NULL;
	untimed->msg_controllen = used;
	return timed && used <= sizeof(control->space);
}

ssize_t message_error(struct msghdr *message, const struct wire_slot *error)
{
	bool ipv4 = error->to[10] == 0xff && error->to[11] == 0xff;
	const struct sock_extended_err told = {
		.ee_errno = error->code == SO_EE_CODE_TXTIME_MISSED ? ECANCELED : EINVAL,
		.ee_origin = SO_EE_ORIGIN_TXTIME,
		.ee_code = error->code,
		.ee_data = (uint32_t)((uint64_t)error->txtime_ns >> 32),
		.ee_info = (uint32_t)error->txtime_ns,
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	size_t written = 0;

	message->msg_namelen = 0;
	message->msg_flags = MSG_ERRQUEUE;
	if (c && message->msg_controllen >= CMSG_SPACE(sizeof(told))) {
		c->cmsg_level = ipv4 ? SOL_IP : SOL_IPV6;
		c->cmsg_type = ipv4 ? IP_RECVERR : IPV6_RECVERR;
		c->cmsg_len = CMSG_LEN(sizeof(told));
		memcpy(CMSG_DATA(c), &told, sizeof(told));
		message->msg_controllen = CMSG_SPACE(sizeof(told));
	} else {
		message->msg_controllen = 0;
		message->msg_flags |= MSG_CTRUNC;
	}
	for (size_t i = 0; i < message->msg_iovlen && written < error->bytes; i++) {
		size_t left = error->bytes - written, room = message->msg_iov[i].iov_len;

		room = room < left ? room : left;
		memcpy(message->msg_iov[i].iov_base, error->payload + written, room);
		written += room;
	}
	if (written < error->bytes) {
		message->msg_flags |= MSG_TRUNC;
	}
	return (ssize_t)written;
}
