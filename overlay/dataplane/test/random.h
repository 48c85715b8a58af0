/* Random numbers that a seed repeats (splitmix64). */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>
#include <stdlib.h>

static uint64_t random_state;

/* random_seed takes SEED of the environment, else 1. */
static inline void random_seed(void)
{
	const char *seed = getenv("SEED");

	random_state = seed ? strtoull(seed, NULL, 10) : 1;
}

/* below returns a random number below n. */
static inline int64_t below(int64_t n)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (int64_t)((z ^ z >> 31) % (uint64_t)n);
}

#endif
