#include "daemon.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../frame/frame.h"
#include "attachment.h"
#include "clock.h"
#include "histogram.h"
#include "listen.h"
#include "state.h"

#define TAKE_MAX 16 /* packets of one client in one poll */
#define EVENTS_MAX 4
#define KEEP_NS 1000000 /* from one look at the sockets to the next */
#define SPIN_NS 60000   /* how long before something is due polling no longer sleeps */

int daemon_watch(struct daemon *d, int fd, enum event kind, int number)
{
	struct epoll_event event = { .events = EPOLLIN };

	event.data.u64 = (uint64_t)kind << 32 | (uint32_t)number;
	return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void daemon_part(struct daemon *d, struct client *c)
{
	struct attachment *a = &d->attachment[c->attachment];

	epoll_ctl(d->epoll, EPOLL_CTL_DEL, c->sock, NULL); /* it is open until it is its turn to be closed */
	a->clients--;
	a->sockets -= c->sockets;
	client_close(c);
}

static int pool_init(struct pool *p, uint32_t frames)
{
	p->frame = calloc(frames, sizeof(*p->frame));
	p->bytes = calloc(frames, sizeof(*p->bytes));
	p->origin = calloc(frames, sizeof(*p->origin));
	p->unused = calloc(frames, sizeof(*p->unused));
	if (!p->frame || !p->bytes || !p->origin || !p->unused) {
		return -ENOMEM;
	}
	for (p->left = 0; p->left < frames; p->left++) {
		p->unused[p->left] = p->left;
	}
	return 0;
}

int daemon_new(struct daemon **made, const struct daemon_config *config)
{
	struct daemon *d = calloc(1, sizeof(*d));
	int err;

	if (!d) {
		return -ENOMEM;
	}
	d->config = *config;
	d->control = -1;
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	sched_getaffinity(0, sizeof(d->cpus), &d->cpus);
	for (int i = 0; i < ATTACHMENTS_MAX; i++) {
		attachment_init(&d->attachment[i]);
	}
	for (int i = 0; i < CLIENTS_MAX; i++) {
		client_init(&d->client[i]);
	}
	/* One more than may wait: it is written before it is known whether it may. */
	err = pool_init(&d->pool, config->sched.packets + 1);
	d->sched = sched_new(&config->sched);
	if (!err && d->epoll < 0) {
		err = -errno;
	}
	if (!err && !d->sched) {
		err = -ENOMEM;
	}
	if (!err) {
		d->control = listen_at(config->control, 0600, CLIENTS_MAX);
		err = d->control < 0 ? d->control : daemon_watch(d, d->control, EVENT_CONTROL, 0);
	}
	if (err) {
		daemon_free(d);
		return err;
	}
	d->times.started_ns = d->times.polled_ns = d->times.awake_ns = clock_ns(CLOCK_TAI);
	*made = d;
	return 0;
}

void daemon_free(struct daemon *d)
{
	for (int i = 0; i < CLIENTS_MAX; i++) {
		if (d->client[i].sock >= 0) {
			daemon_part(d, &d->client[i]);
		}
	}
	for (int i = 0; i < ATTACHMENTS_MAX; i++) {
		attachment_end(&d->attachment[i], d->epoll);
	}
	if (d->control >= 0) {
		close(d->control);
		unlink(d->config.control);
	}
	if (d->epoll >= 0) {
		close(d->epoll);
	}
	sched_free(d->sched);
	free(d->pool.frame);
	free(d->pool.bytes);
	free(d->pool.origin);
	free(d->pool.unused);
	free(d);
}

/* own_address writes the address that a socket sends from to another, if there is one. */
static bool own_address(const struct control_attach *who, const struct client_socket *s,
			const uint8_t to[16], uint8_t from[16])
{
	static const uint8_t any[16];
	bool ipv4 = frame_is_ipv4(to);
	bool unbound = memcmp(s->ip, any, 16) == 0 || (frame_is_ipv4(s->ip) && memcmp(s->ip + 12, any, 4) == 0);

	for (int i = 0; i < who->addresses; i++) {
		const uint8_t *own = who->address[i];

		if (frame_is_ipv4(own) == ipv4 && (unbound || memcmp(own, s->ip, 16) == 0)) {
			memcpy(from, own, 16);
			return true;
		}
	}
	return false;
}

/* to_tai converts a time of another clock; what cannot be one becomes the far past or future. */
static int64_t to_tai(const struct times *t, int32_t clock, int64_t ns)
{
	int64_t offset_ns = clock == CLOCK_MONOTONIC ? t->monotonic_ns : clock == CLOCK_REALTIME ? t->realtime_ns : 0;
	int64_t sum;

	if (__builtin_add_overflow(ns, offset_ns, &sum)) {
		return ns < 0 ? INT64_MIN : INT64_MAX;
	}
	return sum;
}

/* class_of is the traffic class of a priority; those that 802.1Q does not have are best effort. */
static uint8_t class_of(uint8_t priority)
{
	return priority < GATE_CLASSES ? priority : 0;
}

/* enclosure is the path of a frame's tunnel; of a frame that needs none it is not used. */
static struct frame_path enclosure(const struct daemon *d, const struct frame_path *inner, const struct hop *hop)
{
	struct frame_path outer = { .tagged = inner->tagged, .priority = inner->priority };

	memcpy(outer.from.mac, port_mac(d->config.port), 6);
	memcpy(outer.from.ip, d->config.tunnel.from, 16);
	outer.from.port = frame_flow_port(inner);
	memcpy(outer.to.mac, hop->node_mac, 6);
	memcpy(outer.to.ip, hop->node, 16);
	outer.to.port = d->config.tunnel.port;
	return outer;
}

/* write_frame writes what a slot says, in a tunnel where there is one. Returns the length, 0: too long. */
static uint32_t write_frame(const struct daemon *d, uint8_t *out, struct frame_path *path, const struct hop *hop, const struct wire_slot *slot)
{
	struct frame_path outer = enclosure(d, path, hop);
	uint32_t before = route_tunnels(hop) ? frame_tunnel_bytes(&outer) : 0, bytes;

	if (!before) {
		return frame_write(out, path, slot->payload, slot->bytes);
	}
	path->tagged = false; /* the tag is that of the frame on the wire */
	bytes = frame_write(out + before, path, slot->payload, slot->bytes);
	return before + bytes > frame_max(outer.tagged) ? 0 : frame_enclose(out, &outer, d->config.tunnel.vni, bytes);
}

/* report tells a program that wants to know it that a packet was not sent, as ETF would have. */
static void report(struct client *c, const struct wire_slot *slot, const uint8_t *payload, uint8_t code)
{
	const struct client_socket *s = client_find(c, slot->socket);
	static struct wire_slot error;

	if (!s || !(s->flags & SOF_TXTIME_REPORT_ERRORS)) {
		return;
	}
	memcpy(&error, slot, offsetof(struct wire_slot, payload));
	memcpy(error.payload, payload, slot->bytes);
	memcpy(error.to, s->ip, sizeof(error.to)); /* for its family, which is that of the queue */
	error.code = code;
	client_tell(c, &error);
}

/* report_missed does so of a packet that waited, unless its client or its socket has gone meanwhile. */
static void report_missed(struct daemon *d, uint32_t handle)
{
	const struct origin *o = &d->pool.origin[handle];
	struct client *c = &d->client[o->client];
	const struct client_socket *s = client_find(c, o->socket);
	struct wire_slot slot = { .txtime_ns = o->txtime_ns, .socket = o->socket, .bytes = o->bytes };

	if (c->sock >= 0 && c->generation == o->generation && s && s->serial == o->serial) {
		report(c, &slot, d->pool.frame[handle] + d->pool.bytes[handle] - o->bytes, SO_EE_CODE_TXTIME_MISSED);
	}
}

/* enqueue has one packet of a client wait for its time. */
static void enqueue(struct daemon *d, struct client *c, const struct wire_slot *slot)
{
	struct attachment *a = &d->attachment[c->attachment];
	const struct control_attach *who = &a->who;
	const struct client_socket *s = client_find(c, slot->socket);
	struct frame_path path = { .tagged = d->config.tagged, .priority = class_of(slot->priority) };
	struct sched_packet p = { .class = class_of(slot->priority) };
	struct hop hop;
	enum sched_fate fate;

	if (!s || slot->bytes > frame_payload_max(slot->to) || slot->to_port == 0 ||
	    !own_address(who, s, slot->to, path.from.ip)) {
		d->status.malformed++;
		return;
	}
	if (!route_find(&d->routes, slot->to, &hop)) {
		d->status.unrouted++;
		return;
	}
	memcpy(path.to.mac, hop.mac, 6);
	/* A share that has become smaller may be exceeded, so that there may be nothing left within another. */
	if (a->waiting >= a->share || d->pool.left == 0) {
		d->full[p.class]++;
		return;
	}
	memcpy(path.from.mac, who->mac, 6);
	memcpy(path.to.ip, slot->to, 16);
	path.from.port = s->port;
	path.to.port = slot->to_port;
	p.handle = d->pool.unused[d->pool.left - 1];
	d->pool.bytes[p.handle] = (uint16_t)write_frame(d, d->pool.frame[p.handle], &path, &hop, slot);
	if (!d->pool.bytes[p.handle]) {
		d->status.malformed++;
		return;
	}
	p.bytes = sched_wire_bytes(d->pool.bytes[p.handle]);
	p.txtime_ns = to_tai(&d->times, s->clock, slot->txtime_ns);
	fate = sched_push(d->sched, p, d->times.since_ns, d->times.now_ns);
	if (fate == SCHED_LATE || fate == SCHED_EARLY || fate == SCHED_OVERSIZE) {
		report(c, slot, slot->payload, SO_EE_CODE_TXTIME_INVALID_PARAM);
	}
	if (fate != SCHED_QUEUED) {
		return;
	}
	d->pool.origin[p.handle] = (struct origin){
		.generation = c->generation,
		.serial = s->serial,
		.socket = slot->socket,
		.txtime_ns = slot->txtime_ns,
		.client = (uint16_t)(c - d->client),
		.bytes = slot->bytes,
		.attachment = (uint8_t)c->attachment,
	};
	a->waiting++;
	d->pool.left--;
}

bool daemon_take(struct daemon *d, struct client *c, int most)
{
	struct wire_slot slot;
	int got = 0;

	while (most-- > 0 && (got = client_take(c, &slot)) > 0) {
		enqueue(d, c, &slot);
	}
	if (got < 0) {
		d->status.malformed++;
		daemon_part(d, c);
	}
	return got > 0;
}

/*
 * place counts a packet that was handed over after it was decided on, where it may have been
 * on the wire while its gate was shut. That is looked up anew: of the scheduler's own window
 * it would always be said that the delay is to blame. It is not where there was none of the
 * guard band, or where the gate was shut without it.
 */
static void place(struct daemon *d, const struct sched_packet *p, const struct gate_window *w, int64_t decided_ns)
{
	struct control_class *class = &d->status.class[p->class];
	const struct gate *g = sched_gate(d->sched);
	int64_t wire_ns = sched_wire_ns(d->sched, p->bytes), delay_ns = d->times.now_ns - decided_ns;
	bool shut = gate_shut(g, p->class, decided_ns, delay_ns + wire_ns);

	if (!shut && decided_ns + delay_ns + wire_ns <= w->end_ns) {
		return;
	}
	class->misplaced++;
	class->unexplained += shut && (delay_ns < d->config.sched.guard_ns || gate_shut(g, p->class, decided_ns, wire_ns));
}

/* leave sends the packets whose time it is. */
static void leave(struct daemon *d)
{
	struct sched_packet p;
	struct gate_window w;
	enum sched_fate fate;

	while ((fate = sched_pop(d->sched, d->times.now_ns, &p, &w)) != SCHED_QUEUED) {
		int64_t due_ns = p.txtime_ns > w.start_ns ? p.txtime_ns : w.start_ns;
		int64_t decided_ns = d->times.now_ns;

		d->pool.unused[d->pool.left++] = p.handle;
		d->attachment[d->pool.origin[p.handle].attachment].waiting--;
		if (fate == SCHED_MISSED) {
			report_missed(d, p.handle);
			continue;
		}
		if (port_send(d->config.port, d->pool.frame[p.handle], d->pool.bytes[p.handle]) || port_flush(d->config.port)) {
			d->status.overrun++;
		}
		histogram_add(&d->status.late, decided_ns - due_ns);
		d->times.now_ns = clock_ns(CLOCK_TAI);
		place(d, &p, &w, decided_ns);
	}
}

/* list_active has polls look at the clients that there are, and at no others. */
static void list_active(struct daemon *d)
{
	d->actives = 0;
	for (uint16_t i = 0; i < CLIENTS_MAX; i++) {
		if (d->client[i].sock >= 0) {
			d->active[d->actives++] = i;
		}
	}
}

/* keep does what need not be done at every poll. */
static void keep(struct daemon *d)
{
	struct epoll_event event[EVENTS_MAX];
	int64_t monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	int events = epoll_wait(d->epoll, event, EVENTS_MAX, 0);

	d->times.monotonic_ns = clock_ns(CLOCK_TAI) - clock_ns(CLOCK_MONOTONIC);
	d->times.realtime_ns = clock_ns(CLOCK_TAI) - clock_ns(CLOCK_REALTIME);
	for (int i = 0; i < events; i++) {
		daemon_handle(d, event[i].data.u64);
	}
	if (events > 0) {
		list_active(d);
	}
	for (int i = 0; i < d->actives; i++) {
		struct client *c = &d->client[d->active[i]];

		if (c->sock >= 0) {
			atomic_store_explicit(&c->ring->alive_ns, monotonic_ns, memory_order_relaxed);
		}
	}
	d->times.keep_ns = d->times.now_ns + KEEP_NS;
}

/* nap sleeps where nothing is due for long enough that waking up late does no harm. */
static void nap(const struct daemon *d)
{
	int64_t left_ns = sched_wake_ns(d->sched, d->times.now_ns) - SPIN_NS - d->times.now_ns;
	struct timespec t = { .tv_nsec = left_ns < d->config.nap_ns ? left_ns : d->config.nap_ns };

	if (t.tv_nsec > 0) {
		/* For so long and not until then: CLOCK_TAI may be set back meanwhile. */
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
	}
}

bool daemon_poll(struct daemon *d)
{
	int64_t now_ns = clock_ns(CLOCK_TAI);
	bool busy = false;

	d->times.now_ns = now_ns;
	histogram_add(&d->status.gap, now_ns - d->times.awake_ns);
	d->times.since_ns = d->times.polled_ns < now_ns ? d->times.polled_ns : now_ns; /* the clock may have been set back */
	d->times.polled_ns = d->times.awake_ns = now_ns;
	leave(d);
	for (int i = 0; i < d->actives; i++) {
		struct client *c = &d->client[d->active[i]];

		if (c->sock >= 0) {
			busy |= daemon_take(d, c, TAKE_MAX);
		}
	}
	/* Also when the clock was set back. */
	if (d->times.now_ns >= d->times.keep_ns || d->times.now_ns < d->times.keep_ns - KEEP_NS) {
		keep(d);
	}
	return busy;
}

void daemon_run(struct daemon *d, const volatile sig_atomic_t *stop)
{
	d->times.polled_ns = d->times.awake_ns = clock_ns(CLOCK_TAI);
	while (!*stop) {
		if (!daemon_poll(d) && d->config.nap_ns > 0) {
			nap(d);
			d->times.awake_ns = clock_ns(CLOCK_TAI);
		}
	}
}
