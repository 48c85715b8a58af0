/* Headers byte by byte against the RFCs, and checksums against their definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../frame/frame.h"
#include "random.h"

static const struct frame_path ipv4 = {
	.from = { { 2, 0, 0, 0, 0, 1 }, { [10] = 0xff, 0xff, 10, 0, 0, 1 }, 0x1234 },
	.to = { { 2, 0, 0, 0, 0, 2 }, { [10] = 0xff, 0xff, 10, 0, 0, 2 }, 0x5678 },
};

static const struct frame_path ipv6 = {
	.from = { { 2, 0, 0, 0, 0, 1 }, { 0xfd, [15] = 1 }, 0x1234 },
	.to = { { 2, 0, 0, 0, 0, 2 }, { 0xfd, [15] = 2 }, 0x5678 },
	.tagged = true,
	.priority = 5,
};

/* ones adds 16 bit words with end-around carry; of what has a right checksum that is 0xffff. */
static uint32_t ones(uint32_t so_far, const uint8_t *data, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++) {
		so_far += i % 2 ? data[i] : (uint32_t)data[i] << 8;
		so_far = (so_far & 0xffff) + (so_far >> 16);
	}
	return so_far;
}

static void ipv4_is_as_in_rfc_791(void **unused)
{
	static const uint8_t want[] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00,
		0x45, 0, 0, 31, 0, 0, 0x40, 0, 64, 17, 0x26, 0xcc, 10, 0, 0, 1, 10, 0, 0, 2,
		0x12, 0x34, 0x56, 0x78, 0, 11,
	};
	uint8_t out[FRAME_HEADERS_MAX + 3];
	uint32_t bytes = frame_write(out, &ipv4, (const uint8_t *)"abc", 3);

	(void)unused;
	assert_int_equal(bytes, 14 + 20 + 8 + 3);
	assert_memory_equal(out, want, sizeof(want));
	assert_memory_equal(out + bytes - 3, "abc", 3);
}

static void ipv6_is_as_in_rfc_8200_behind_a_tag(void **unused)
{
	static const uint8_t want[] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x81, 0x00, 0xa0, 0x00, 0x86, 0xdd,
		0x60, 0, 0, 0, 0, 8, 17, 64,
	};
	uint8_t out[FRAME_HEADERS_MAX];

	(void)unused;
	assert_int_equal(frame_write(out, &ipv6, NULL, 0), FRAME_HEADERS_MAX);
	assert_memory_equal(out, want, sizeof(want));
	assert_memory_equal(out + 26, ipv6.from.ip, 16);
	assert_memory_equal(out + 42, ipv6.to.ip, 16);
}

static void to_groups_it_crosses_no_router(void **unused)
{
	struct frame_path four = ipv4, six = ipv6;
	uint8_t out[FRAME_HEADERS_MAX];

	(void)unused;
	four.to.ip[12] = 239;
	frame_write(out, &four, NULL, 0);
	assert_int_equal(out[14 + 8], 1);
	six.to.ip[0] = 0xff;
	frame_write(out, &six, NULL, 0);
	assert_int_equal(out[18 + 7], 1);
}

static void checksums_are_right_for_every_length(void **unused)
{
	static uint8_t payload[1472], out[1600];

	(void)unused;
	for (uint32_t bytes = 0; bytes <= frame_payload_max(ipv4.to.ip); bytes++) {
		const struct frame_path *path = bytes % 2 || bytes > frame_payload_max(ipv6.to.ip) ? &ipv4 : &ipv6;
		uint32_t udp_at = path == &ipv4 ? 34 : 58, addresses = path == &ipv4 ? 8 : 32, udp_bytes = 8 + bytes;
		const uint8_t pseudo[] = { 0, 17, (uint8_t)(udp_bytes >> 8), (uint8_t)udp_bytes };
		uint32_t frame;

		for (uint32_t i = 0; i < bytes; i++) {
			payload[i] = (uint8_t)below(256);
		}
		frame = frame_write(out, path, payload, bytes);
		assert_int_equal(frame, udp_at + udp_bytes);
		assert_int_equal(ones(ones(ones(0, pseudo, 4), out + udp_at - addresses, addresses), out + udp_at, udp_bytes), 0xffff);
		if (path == &ipv4) {
			assert_int_equal(ones(0, out + 14, 20), 0xffff);
		}
	}
}

/* A checksum that comes to zero is sent as 0xffff: zero says that there is none (RFC 768). */
static void a_checksum_of_zero_is_sent_as_ones(void **unused)
{
	uint8_t out[FRAME_HEADERS_MAX + 2], payload[2] = { 0, 0 };
	uint16_t checksum;

	(void)unused;
	frame_write(out, &ipv4, payload, 2);
	checksum = (uint16_t)(out[40] << 8 | out[41]);
	payload[0] = (uint8_t)(checksum >> 8);
	payload[1] = (uint8_t)checksum;
	frame_write(out, &ipv4, payload, 2);
	assert_int_equal(out[40] << 8 | out[41], 0xffff);
}

/* What is enclosed stays as it is, and before it stands what RFC 7348 §5 has. */
static void a_tunnel_is_as_in_rfc_7348(void **unused)
{
	static const uint8_t want[] = {
		2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 1, 1, 0x08, 0x00,
		0x45, 0, 0, 81, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 168, 0, 1, 192, 168, 0, 2,
		0xc0, 0x01, 0x12, 0xb5, 0, 61, 0, 0,
		0x08, 0, 0, 0, 0x01, 0x02, 0x03, 0,
	};
	struct frame_path outer = {
		.from = { { 2, 0, 0, 0, 1, 1 }, { [10] = 0xff, 0xff, 192, 168, 0, 1 }, 0xc001 },
		.to = { { 2, 0, 0, 0, 1, 2 }, { [10] = 0xff, 0xff, 192, 168, 0, 2 }, FRAME_VXLAN_PORT },
	};
	uint8_t out[FRAME_TUNNEL_MAX + FRAME_HEADERS_MAX + 3], inner[FRAME_HEADERS_MAX + 3];
	uint32_t before = frame_tunnel_bytes(&outer), bytes = frame_write(inner, &ipv4, (const uint8_t *)"abc", 3);

	(void)unused;
	assert_int_equal(before, sizeof(want));
	memcpy(out + before, inner, bytes);
	assert_int_equal(frame_enclose(out, &outer, 0x010203, bytes), before + bytes);
	assert_memory_equal(out + before, inner, bytes);
	assert_int_equal(ones(0, out + 14, 20), 0xffff);
	out[24] = out[25] = 0;
	assert_memory_equal(out, want, sizeof(want));
	outer.tagged = true;
	memcpy(outer.from.ip, ipv6.from.ip, 16);
	memcpy(outer.to.ip, ipv6.to.ip, 16);
	before = frame_tunnel_bytes(&outer);
	assert_int_equal(before, FRAME_TUNNEL_MAX);
	memcpy(out + before, inner, bytes);
	frame_enclose(out, &outer, 1, bytes);
	assert_int_equal(ones(17 + 16 + bytes, out + 26, 32 + 16 + bytes), 0xffff);
}

static void flows_have_ports_of_their_own(void **unused)
{
	struct frame_path other = ipv4;
	uint16_t port = frame_flow_port(&ipv4);

	(void)unused;
	assert_true(port >= 0xc000);
	assert_int_equal(frame_flow_port(&other), port);
	other.from.port++;
	assert_int_not_equal(frame_flow_port(&other), port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_is_as_in_rfc_791),
		cmocka_unit_test(ipv6_is_as_in_rfc_8200_behind_a_tag),
		cmocka_unit_test(to_groups_it_crosses_no_router),
		cmocka_unit_test(checksums_are_right_for_every_length),
		cmocka_unit_test(a_checksum_of_zero_is_sent_as_ones),
		cmocka_unit_test(a_tunnel_is_as_in_rfc_7348),
		cmocka_unit_test(flows_have_ports_of_their_own),
	};

	random_seed();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
