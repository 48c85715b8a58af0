/* Questions and answers byte by byte against the RFCs, and what is no question. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../frame/frame.h"
#include "../frame/neighbour.h"
#include "random.h"

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 9 };

static const uint8_t arp[] = {
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x08, 0x06,
	0, 1, 0x08, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2,
};

static void arp_is_answered_as_in_rfc_826(void **unused)
{
	static const uint8_t want[] = {
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x08, 0x06,
		0, 1, 0x08, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 9, 10, 0, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1,
	};
	static const uint8_t wanted[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };
	uint8_t out[NEIGHBOUR_BYTES];
	struct neighbour_question q;

	(void)unused;
	assert_true(neighbour_read(&q, arp, sizeof(arp)));
	assert_memory_equal(q.wanted, wanted, 16);
	assert_int_equal(neighbour_write(out, &q, mac), sizeof(want));
	assert_memory_equal(out, want, sizeof(want));
}

/* solicitation writes a question of neighbour discovery, with its checksum. */
static uint32_t solicitation(uint8_t out[78], bool nobody)
{
	static const uint8_t head[] = {
		0x33, 0x33, 0xff, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255,
		0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 2,
		135, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
	};
	uint32_t sum = 58 + 24;

	memcpy(out, head, sizeof(head));
	if (nobody) {
		memset(out + 22, 0, 16);
	}
	for (uint32_t i = 22; i < sizeof(head); i += 2) {
		sum += (uint32_t)out[i] << 8 | out[i + 1];
	}
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	out[56] = (uint8_t)(sum >> 8);
	out[57] = (uint8_t)sum;
	return sizeof(head);
}

/* ones adds 16 bit words with end-around carry; of what has a right checksum that is 0xffff. */
static uint32_t ones(uint32_t so_far, const uint8_t *data, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++) {
		so_far += i % 2 ? data[i] : (uint32_t)data[i] << 8;
		so_far = (so_far & 0xffff) + (so_far >> 16);
	}
	return so_far;
}

static void solicitations_are_answered_as_in_rfc_4861(void **unused)
{
	static const uint8_t advertisement[] = {
		136, 0, 0, 0, 0x60, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 1, 2, 0, 0, 0, 0, 9,
	};
	static const uint8_t all[16] = { 0xff, 2, [15] = 1 };
	uint8_t in[78], out[NEIGHBOUR_BYTES];
	struct neighbour_question q;

	(void)unused;
	assert_true(neighbour_read(&q, in, solicitation(in, false)));
	assert_int_equal(neighbour_write(out, &q, mac), NEIGHBOUR_BYTES);
	assert_memory_equal(out, in + 6, 6);        /* to who asked, from whom was asked for */
	assert_memory_equal(out + 22, in + 62, 16);
	assert_memory_equal(out + 38, in + 22, 16);
	assert_int_equal(ones(58 + 32, out + 22, 64), 0xffff);
	out[56] = out[57] = 0;
	assert_memory_equal(out + 54, advertisement, sizeof(advertisement));
	/* Who has no address yet asks whether it may have one: all are told, unsolicited. */
	assert_true(neighbour_read(&q, in, solicitation(in, true)));
	neighbour_write(out, &q, mac);
	assert_memory_equal(out + 38, all, 16);
	assert_int_equal(out[58], 0x20);
}

static void what_does_not_ask_is_not_answered(void **unused)
{
	uint8_t in[78];
	struct neighbour_question q;
	uint32_t bytes = solicitation(in, false);

	(void)unused;
	for (uint32_t short_of = 0; short_of < bytes; short_of++) {
		assert_false(neighbour_read(&q, in, short_of));
	}
	for (uint32_t short_of = 0; short_of < sizeof(arp); short_of++) {
		assert_false(neighbour_read(&q, arp, short_of));
	}
	for (uint32_t at = 18; at < bytes; at++) { /* lengths, kinds, hops, and by the checksum all else */
		if (at >= 18 && at < 20) {
			continue; /* a greater length than there is */
		}
		in[at] ^= 0x41;
		assert_false(neighbour_read(&q, in, bytes));
		in[at] ^= 0x41;
	}
	in[18] = 1;
	assert_false(neighbour_read(&q, in, bytes));
	for (int i = 0; i < 100000; i++) { /* anything: for the sanitizers */
		uint8_t any[128], out[NEIGHBOUR_BYTES];

		for (uint32_t k = 0; k < sizeof(any); k++) {
			any[k] = (uint8_t)below(256);
		}
		if (below(2)) {
			memcpy(any, below(2) ? arp : in, 22);
		}
		if (neighbour_read(&q, any, (uint32_t)below(sizeof(any) + 1))) {
			neighbour_write(out, &q, mac);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arp_is_answered_as_in_rfc_826),
		cmocka_unit_test(solicitations_are_answered_as_in_rfc_4861),
		cmocka_unit_test(what_does_not_ask_is_not_answered),
	};

	random_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
