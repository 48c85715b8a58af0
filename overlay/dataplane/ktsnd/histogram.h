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

/* histogram_quantile returns the least value of the bucket in which a share of all is reached; 0 of none. */
static inline int64_t histogram_quantile(const struct control_histogram *h, double share)
{
	uint64_t all = 0, seen = 0;

	for (int i = 0; i < CONTROL_BUCKETS; i++) {
		all += h->count[i];
	}
	for (int i = 0; i < CONTROL_BUCKETS; i++) {
		seen += h->count[i];
		if (h->count[i] > 0 && (double)seen >= share * (double)all) {
			return i < 16 ? i : (int64_t)(16 + i % 16) << (i / 16 - 1);
		}
	}
	return 0;
}

#endif
