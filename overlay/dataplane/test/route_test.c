/* The table of routes against a plain array, over random changes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../ktsnd/histogram.h"
#include "../ktsnd/route.h"
#include "random.h"

#define ADDRESSES 1200

static void address_of(int number, uint8_t address[16])
{
	memset(address, 0, 16);
	address[0] = 0xfd;
	address[14] = (uint8_t)(number >> 8);
	address[15] = (uint8_t)number;
}

static void what_is_set_is_found(void **unused)
{
	static struct routes r;
	static uint8_t want[ADDRESSES]; /* the last byte of each MAC; 0: no route */
	uint32_t used = 0;

	(void)unused;
	for (int change = 0; change < 20000; change++) {
		int number = (int)below(ADDRESSES);
		struct hop hop = { 0 };
		uint8_t address[16], *mac = hop.mac;
		int err;

		address_of(number, address);
		mac[5] = below(2) ? (uint8_t)(1 + below(255)) : 0;
		err = route_set(&r, address, &hop);
		if (!want[number] && mac[5] && used == ROUTES_MAX / 4 * 3) {
			assert_int_equal(err, -ENOSPC);
			continue;
		}
		assert_int_equal(err, 0);
		used += !!mac[5] - !!want[number];
		want[number] = mac[5];
		assert_int_equal(r.used, used);
	}
	for (int number = 0; number < ADDRESSES; number++) {
		struct hop hop;
		uint8_t address[16];

		address_of(number, address);
		assert_int_equal(route_find(&r, address, &hop), want[number] != 0);
		assert_int_equal(hop.mac[5], want[number]);
		assert_false(route_tunnels(&hop));
	}
}

static void groups_have_macs_of_their_own(void **unused)
{
	static const struct routes none;
	static const uint8_t ipv4[16] = { [10] = 0xff, 0xff, 239, 129, 2, 3 }, ipv6[16] = { 0xff, 2, [12] = 4, 5, 6, 7 };
	static const uint8_t want4[] = { 1, 0, 0x5e, 1, 2, 3 }, want6[] = { 0x33, 0x33, 4, 5, 6, 7 };
	struct hop hop;

	(void)unused;
	assert_true(route_find(&none, ipv4, &hop));
	assert_memory_equal(hop.mac, want4, 6);
	assert_true(route_find(&none, ipv6, &hop));
	assert_memory_equal(hop.mac, want6, 6);
}

/* What a bucket holds differs by less than a sixteenth, and buckets are in order. */
static void buckets_are_a_sixteenth_wide(void **unused)
{
	int last = 0;

	(void)unused;
	for (int64_t ns = 0; ns < INT64_C(1) << 31; ns += 1 + ns / 100) {
		static struct control_histogram h;
		int bucket = 0;

		h = (struct control_histogram){ 0 };
		histogram_add(&h, ns);
		while (!h.count[bucket]) {
			bucket++;
		}
		assert_true(bucket == last || bucket == last + 1);
		assert_int_equal(h.max_ns, ns);
		if (bucket >= 16) {
			int64_t least = (int64_t)(16 + bucket % 16) << (bucket / 16 - 1);

			assert_true(least <= ns && ns - least <= least / 16);
		}
		last = bucket;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_set_is_found),
		cmocka_unit_test(groups_have_macs_of_their_own),
		cmocka_unit_test(buckets_are_a_sixteenth_wide),
	};

	random_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
