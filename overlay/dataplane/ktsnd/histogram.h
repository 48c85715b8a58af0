/* How many values lay where: buckets of a sixteenth of a power of two. */
#ifndef KTSND_HISTOGRAM_H
#define KTSND_HISTOGRAM_H

#include "../wire/control.h"

static inline void histogram_add(struct control_histogram *h, int64_t ns)
{
	uint64_t value = ns < 0 ? 0 : (uint64_t)ns;
	uint64_t bucket = value;

	if (value >= 16) {
		int octave = 63 - __builtin_clzll(value);

		bucket = (uint64_t)(octave - 3) * 16 + (value >> (octave - 4) & 15);
	}
	h->count[bucket < CONTROL_BUCKETS ? bucket : CONTROL_BUCKETS - 1]++;
	h->max_ns = ns > h->max_ns ? ns : h->max_ns;
}

#endif
