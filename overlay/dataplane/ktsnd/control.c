#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../wire/pass.h"
#include "listen.h"
#include "state.h"

#define DESCRIPTORS_MAX 65536

/* divide gives each attachment an equal share of all that there is, so that none takes another's. */
static void divide(struct daemon *d)
{
	uint32_t attached = 0;
	struct rlimit files = { 0 };

	for (int i = 0; i < ATTACHMENTS_MAX; i++) {
		attached += d->attachment[i].listener >= 0;
	}
	if (attached == 0) {
		return;
	}
	(void)getrlimit(RLIMIT_NOFILE, &files);
	d->clients_share = CLIENTS_MAX / attached;
	/* The other half is for connections, and for what is being closed. */
	d->sockets_share = (uint32_t)(files.rlim_cur < DESCRIPTORS_MAX ? files.rlim_cur : DESCRIPTORS_MAX) / 2 / attached;
	for (int i = 0; i < ATTACHMENTS_MAX; i++) {
		d->attachment[i].share = d->config.sched.packets / attached;
	}
}

/* named returns the attachment of a name, or NULL. */
static struct attachment *named(struct daemon *d, const char *name)
{
	for (int i = 0; i < ATTACHMENTS_MAX; i++) {
		struct attachment *a = &d->attachment[i];

		if (a->listener >= 0 && strncmp(a->who.name, name, sizeof(a->who.name)) == 0) {
			return a;
		}
	}
	return NULL;
}

/* begin has the programs of an attachment be listened to. Returns 0, or -errno and has left nothing. */
static int begin(struct daemon *d, struct attachment *a, int asked)
{
	int number = (int)(a - d->attachment), err = closer_new(&a->closer, &d->cpus);

	if (!err) {
		a->listener = listen_at(a->who.path, 0666, CLIENTS_MAX);
		err = a->listener < 0 ? a->listener : daemon_watch(d, a->listener, EVENT_ATTACHMENT, number);
	}
	if (!err && asked >= 0) {
		a->asked = fcntl(asked, F_DUPFD_CLOEXEC, 0); /* from now on its own */
		err = a->asked < 0 ? -errno : daemon_watch(d, a->asked, EVENT_NEIGHBOUR, number);
	}
	if (err) {
		attachment_end(a, d->epoll);
	}
	return err;
}

static int attach(struct daemon *d, const struct control_attach *who, int asked, char *reason)
{
	static const uint8_t none[6];
	struct attachment *a = d->attachment;
	int err;

	if (who->name[sizeof(who->name) - 1] || who->path[sizeof(who->path) - 1] || !who->name[0] || !who->path[0] ||
	    who->addresses > CONTROL_ADDRESSES_MAX) {
		strcpy(reason, "an attachment has a name, a path and up to 8 addresses");
		return -EINVAL;
	}
	if (named(d, who->name)) {
		strcpy(reason, "there is an attachment of that name");
		return -EEXIST;
	}
	while (a < d->attachment + ATTACHMENTS_MAX && a->listener >= 0) {
		a++;
	}
	if (a == d->attachment + ATTACHMENTS_MAX) {
		strcpy(reason, "there are 64 attachments, and no more fit");
		return -ENOSPC;
	}
	a->who = *who;
	if (memcmp(who->mac, none, 6) == 0) {
		memcpy(a->who.mac, port_mac(d->config.port), 6);
	}
	err = begin(d, a, asked);
	if (err) {
		snprintf(reason, 112, "listen at its path: %s", strerror(-err));
	}
	divide(d);
	return err;
}

static int detach(struct daemon *d, const char *name, char *reason)
{
	struct attachment *a = named(d, name);

	if (!a) {
		strcpy(reason, "there is no attachment of that name");
		return -ENOENT;
	}
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (d->client[i].sock >= 0 && d->client[i].attachment == a - d->attachment) {
			daemon_part(d, &d->client[i]);
		}
	}
	attachment_end(a, d->epoll);
	divide(d);
	return 0;
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
