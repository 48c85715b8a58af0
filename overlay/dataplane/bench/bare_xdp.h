/* An AF_XDP sender as short as it can be, to compare the port with: it copies no frame. */
#ifndef BENCH_BARE_XDP_H
#define BENCH_BARE_XDP_H

#include <stdint.h>

/* bare_xdp sends packets of 106 bytes, batch at a time, and returns how many ns that took, or -errno. */
int64_t bare_xdp(const char *interface, uint64_t packets, uint32_t batch);

#endif
