/*
 * A port on any interface by AF_XDP (Linux Documentation/networking/af_xdp.rst), in copy
 * mode, which every driver has: frames are put on a ring that is shared with the kernel,
 * and one system call has it send all that are there. Nothing is received, and no BPF
 * program is loaded.
 */
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <linux/if_xdp.h>
#include <xdp/xsk.h>

#include "interface.h"
#include "port.h"

#define FRAMES 2048 /* a power of two; no more are on the ring, or with the kernel */
#define BUFFER_BYTES 2048
#define TRIES 50 /* a queue is busy for some ms after another socket was closed */
#define KICKS 64 /* the kernel sends up to 32 frames a call */

struct af_xdp {
	struct port port;
	struct xsk_umem *umem;
	struct xsk_socket *xsk;
	struct xsk_ring_prod tx, fill;
	struct xsk_ring_cons done;
	uint8_t *memory;
	uint64_t unused[FRAMES];
	uint32_t left, waiting; /* frames that are free, and that are not kicked yet */
};

static int bind_queue(struct af_xdp *p, const char *interface)
{
	const struct xsk_socket_config config = {
		.tx_size = FRAMES,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = XDP_COPY,
	};
	const struct timespec pause = { .tv_nsec = 10000000 };
	int err = -EBUSY;

	for (int i = 0; i < TRIES && err == -EBUSY; i++) {
		if (i > 0) {
			nanosleep(&pause, NULL);
		}
		err = xsk_socket__create(&p->xsk, interface, 0, p->umem, NULL, &p->tx, &config);
	}
	return err;
}

static int setup(struct af_xdp *p, const char *interface)
{
	const struct xsk_umem_config config = {
		.fill_size = FRAMES,
		.comp_size = FRAMES,
		.frame_size = BUFFER_BYTES,
	};
	int err = interface_of(interface, p->port.mac, NULL);

	if (err) {
		return err;
	}
	p->memory = mmap(NULL, FRAMES * BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (p->memory == MAP_FAILED) {
		p->memory = NULL;
		return -errno;
	}
	err = xsk_umem__create(&p->umem, p->memory, FRAMES * BUFFER_BYTES, &p->fill, &p->done, &config);
	if (err) {
		return err;
	}
	for (p->left = 0; p->left < FRAMES; p->left++) {
		p->unused[p->left] = (uint64_t)p->left * BUFFER_BYTES;
	}
	return bind_queue(p, interface);
}

static void af_xdp_close(struct port *port)
{
	struct af_xdp *p = (struct af_xdp *)port;

	if (p->xsk) {
		xsk_socket__delete(p->xsk);
	}
	if (p->umem) {
		xsk_umem__delete(p->umem);
	}
	if (p->memory) {
		munmap(p->memory, FRAMES * BUFFER_BYTES);
	}
	free(p);
}

static int af_xdp_open(struct port **port, const char *interface)
{
	struct af_xdp *p = calloc(1, sizeof(*p));
	int err;

	if (!p) {
		return -ENOMEM;
	}
	p->port.ops = &port_af_xdp;
	err = setup(p, interface);
	if (err) {
		af_xdp_close(&p->port);
		return err;
	}
	*port = &p->port;
	return 0;
}

/* reclaim takes back the frames that have been sent. */
static void reclaim(struct af_xdp *p)
{
	uint32_t at, n = xsk_ring_cons__peek(&p->done, FRAMES, &at);

	for (uint32_t i = 0; i < n; i++) {
		p->unused[p->left++] = *xsk_ring_cons__comp_addr(&p->done, at + i);
	}
	if (n > 0) {
		xsk_ring_cons__release(&p->done, n);
	}
}

static int af_xdp_send(struct port *port, const void *frame, uint32_t bytes)
{
	struct af_xdp *p = (struct af_xdp *)port;
	struct xdp_desc *slot;
	uint32_t at;

	if (p->left == 0) {
		reclaim(p);
	}
	if (bytes > BUFFER_BYTES || p->left == 0 || xsk_ring_prod__reserve(&p->tx, 1, &at) != 1) {
		return bytes > BUFFER_BYTES ? -EMSGSIZE : -ENOBUFS;
	}
	slot = xsk_ring_prod__tx_desc(&p->tx, at);
	*slot = (struct xdp_desc){ .addr = p->unused[--p->left], .len = bytes };
	memcpy(p->memory + slot->addr, frame, bytes);
	xsk_ring_prod__submit(&p->tx, 1);
	p->waiting++;
	return 0;
}

static int af_xdp_flush(struct port *port)
{
	struct af_xdp *p = (struct af_xdp *)port;

	for (int i = 0; i < KICKS && p->waiting > 0; i++) {
		if (sendto(xsk_socket__fd(p->xsk), NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0) {
			p->waiting = 0;
		} else if (errno != EAGAIN && errno != EBUSY && errno != EINTR) {
			return errno == ENOBUFS ? -ENOBUFS : -errno;
		}
	}
	reclaim(p);
	return p->waiting ? -ENOBUFS : 0;
}

const struct port_ops port_af_xdp = { "af_xdp", af_xdp_open, af_xdp_send, af_xdp_flush, af_xdp_close };
