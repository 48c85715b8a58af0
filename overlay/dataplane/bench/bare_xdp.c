#include "bare_xdp.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <linux/if_xdp.h>
#include <xdp/xsk.h>

#include "../ktsnd/clock.h"

#define FRAMES 2048
#define BUFFER_BYTES 2048
#define FRAME_BYTES 106

/* Each frame was written once, before: all that is sent is a descriptor. */
static int64_t run(struct xsk_socket *xsk, struct xsk_ring_prod *tx, struct xsk_ring_cons *done, uint64_t packets, uint32_t batch)
{
	int64_t started_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t sent = 0;
	uint32_t with_kernel = 0, next = 0;

	while (sent < packets) {
		uint32_t at, n;

		for (uint32_t i = 0; i < batch && with_kernel < FRAMES && xsk_ring_prod__reserve(tx, 1, &at) == 1; i++) {
			*xsk_ring_prod__tx_desc(tx, at) = (struct xdp_desc){ .addr = next++ % FRAMES * BUFFER_BYTES, .len = FRAME_BYTES };
			xsk_ring_prod__submit(tx, 1);
			with_kernel++;
			sent++;
		}
		while (sendto(xsk_socket__fd(xsk), NULL, 0, MSG_DONTWAIT, NULL, 0) < 0) {
			if (errno != EAGAIN && errno != EBUSY && errno != EINTR) {
				return -errno;
			}
		}
		n = xsk_ring_cons__peek(done, FRAMES, &at);
		xsk_ring_cons__release(done, n);
		with_kernel -= n;
	}
	return clock_ns(CLOCK_MONOTONIC) - started_ns;
}

int64_t bare_xdp(const char *interface, uint64_t packets, uint32_t batch)
{
	const struct xsk_umem_config umem_config = { .fill_size = FRAMES, .comp_size = FRAMES, .frame_size = BUFFER_BYTES };
	const struct xsk_socket_config config = {
		.tx_size = FRAMES, .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD, .bind_flags = XDP_COPY,
	};
	struct xsk_umem *umem;
	struct xsk_socket *xsk;
	struct xsk_ring_prod tx, fill;
	struct xsk_ring_cons done;
	uint8_t *memory = mmap(NULL, FRAMES * BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int64_t took_ns;
	int err;

	if (memory == MAP_FAILED) {
		return -errno;
	}
	err = xsk_umem__create(&umem, memory, FRAMES * BUFFER_BYTES, &fill, &done, &umem_config);
	if (err) {
		return err;
	}
	for (uint32_t i = 0; i < FRAMES; i++) {
		memory[(uint64_t)i * BUFFER_BYTES + 12] = 0x88; /* a type that nobody takes */
		memory[(uint64_t)i * BUFFER_BYTES + 13] = 0xb5;
	}
	err = xsk_socket__create(&xsk, interface, 0, umem, NULL, &tx, &config);
	if (err) {
		xsk_umem__delete(umem);
		return err;
	}
	took_ns = run(xsk, &tx, &done, packets, batch);
	xsk_socket__delete(xsk);
	xsk_umem__delete(umem);
	return took_ns;
}
