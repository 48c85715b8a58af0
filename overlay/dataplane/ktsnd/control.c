#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../wire/pass.h"
#include "listen.h"
#include "state.h"

/* divide gives each attachment its share of the packets that may wait, so that none takes another's room. */
static void divide(struct daemon *d)
{
	uint32_t attached = 0;

	for (int i = 0; i < ATTACHMENTS_MAX; i++) {
		attached += d->attachment[i].listener >= 0;
	}
	for (int i = 0; i < ATTACHMENTS_MAX; i++) {
		d->attachment[i].share = d->config.sched.packets / (attached ? attached : 1);
	}
}

static int attach(struct daemon *d, const struct control_attach *who, int asked, char *reason)
{
	static const uint8_t none[6];
	int free = 0, listener;

	if (who->name[sizeof(who->name) - 1] || who->path[sizeof(who->path) - 1] || !who->name[0] || !who->path[0] ||
	    who->addresses > CONTROL_ADDRESSES_MAX) {
		strcpy(reason, "an attachment has a name, a path and up to 8 addresses");
		return -EINVAL;
	}
	while (free < ATTACHMENTS_MAX && d->attachment[free].listener >= 0) {
		if (strcmp(d->attachment[free].who.name, who->name) == 0) {
			strcpy(reason, "there is an attachment of that name");
			return -EEXIST;
		}
		free++;
	}
	if (free == ATTACHMENTS_MAX) {
		strcpy(reason, "there are 64 attachments, and no more fit");
		return -ENOSPC;
	}
	listener = listen_at(who->path, 0666, CLIENTS_MAX);
	if (listener < 0) {
		snprintf(reason, 112, "listen at its path: %s", strerror(-listener));
		return listener;
	}
	d->attachment[free].listener = listener;
	d->attachment[free].who = *who;
	divide(d);
	if (asked >= 0) { /* from now on its own */
		d->attachment[free].asked = fcntl(asked, F_DUPFD_CLOEXEC, 0);
		(void)daemon_watch(d, d->attachment[free].asked, EVENT_NEIGHBOUR, free);
	}
	if (memcmp(who->mac, none, 6) == 0) {
		memcpy(d->attachment[free].who.mac, port_mac(d->config.port), 6);
	}
	return daemon_watch(d, listener, EVENT_ATTACHMENT, free);
}

static int detach(struct daemon *d, const char *name, char *reason)
{
	for (int i = 0; i < ATTACHMENTS_MAX; i++) {
		if (d->attachment[i].listener < 0 || strncmp(d->attachment[i].who.name, name, 64) != 0) {
			continue;
		}
		attachment_end(&d->attachment[i]);
		divide(d);
		for (int k = 0; k < CLIENTS_MAX; k++) {
			if (d->client[k].sock >= 0 && d->client[k].attachment == i) {
				client_close(&d->client[k]);
			}
		}
		return 0;
	}
	strcpy(reason, "there is no attachment of that name");
	return -ENOENT;
}

static int schedule(struct daemon *d, const struct control_schedule *s, char *reason)
{
	static struct gate_list list;
	int err;

	list = (struct gate_list){ .base_ns = s->base_ns, .cycle_ns = s->cycle_ns, .extension_ns = s->extension_ns };
	if (s->entries > CONTROL_ENTRIES_MAX) {
		strcpy(reason, "a gate control list has up to 256 entries");
		return -EINVAL;
	}
	list.entries = (int)s->entries;
	for (int i = 0; i < list.entries; i++) {
		list.entry[i].interval_ns = s->entry[i].interval_ns;
		list.entry[i].open = (uint8_t)s->entry[i].open;
	}
	err = sched_load(d->sched, &list, d->times.now_ns);
	if (err) {
		strcpy(reason, "the list cannot run: see its base, its cycle and its intervals");
	}
	return err;
}

static int route(struct daemon *d, const struct control_route *r, char *reason)
{
	struct hop hop;
	int err;

	memcpy(hop.node, r->node, sizeof(hop.node));
	memcpy(hop.mac, r->mac, sizeof(hop.mac));
	memcpy(hop.node_mac, r->node_mac, sizeof(hop.node_mac));
	if (route_tunnels(&hop) && frame_is_ipv4(hop.node) != frame_is_ipv4(d->config.tunnel.from)) {
		strcpy(reason, "a tunnel leads to nodes of the family of --tunnel-from alone");
		return -EAFNOSUPPORT;
	}
	err = route_set(&d->routes, r->address, &hop);
	if (err) {
		strcpy(reason, "there are 768 routes, and no more fit");
	}
	return err;
}

/* obey carries out a request; reason says for people why not. Returns 0 or -errno. */
static int obey(struct daemon *d, const struct control_request *request, int fd, char *reason)
{
	switch (request->type) {
	case CONTROL_ATTACH:
		return attach(d, &request->attach, fd, reason);
	case CONTROL_DETACH:
		return detach(d, request->attach.name, reason);
	case CONTROL_ROUTE:
		return route(d, &request->route, reason);
	case CONTROL_SCHEDULE:
		return schedule(d, &request->schedule, reason);
	case CONTROL_STATUS:
		return 0;
	}
	strcpy(reason, "there is no such request");
	return -EINVAL;
}

static void tell(struct daemon *d, struct control_status *status)
{
	const struct gate *g = sched_gate(d->sched);

	*status = d->status;
	status->now_ns = d->times.now_ns;
	status->started_ns = d->times.started_ns;
	status->change_ns = g->pending ? g->change_ns : 0;
	for (int i = 0; i < CLIENTS_MAX; i++) {
		status->clients += d->client[i].sock >= 0;
		status->sockets += d->client[i].sockets;
	}
	for (int class = 0; class < GATE_CLASSES; class++) {
		status->class[class].waiting = sched_waiting(d->sched, class);
		for (int fate = 0; fate < SCHED_FATES; fate++) {
			status->class[class].fate[fate] = sched_count(d->sched, class, (enum sched_fate)fate);
		}
		status->class[class].fate[SCHED_FULL] += d->full[class];
	}
}

void control_answer(struct daemon *d, int sock)
{
	static struct control_request request;
	static struct control_answer reply;
	int fd, err = pass_receive(sock, &request, sizeof(request), &fd, MSG_DONTWAIT);

	if (err == -EAGAIN) {
		return;
	}
	if (err && err != -EBADMSG) {
		close(sock);
		return;
	}
	memset(&reply, 0, sizeof(reply));
	reply.version = CONTROL_VERSION;
	if (err || request.version != CONTROL_VERSION) {
		reply.error = -EPROTO;
		strcpy(reply.reason, "the request is not of this daemon's version");
	} else {
		reply.error = obey(d, &request, fd, reply.reason);
	}
	if (fd >= 0) {
		close(fd);
	}
	tell(d, &reply.status);
	if (pass_send(sock, &reply, sizeof(reply), -1, MSG_DONTWAIT)) {
		close(sock);
	}
}
