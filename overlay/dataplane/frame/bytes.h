/* Numbers of big endian, sums and lengths that headers are made of; for the files of this folder alone. */
#ifndef FRAME_BYTES_H
#define FRAME_BYTES_H

#include <stdint.h>

enum {
	TYPE_IPV4 = 0x0800,
	TYPE_ARP = 0x0806,
	TYPE_TAG = 0x8100,
	TYPE_IPV6 = 0x86dd,
	ETHERNET_BYTES = 14,
	TAG_BYTES = 4,
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
};

static inline uint8_t *put16(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

static inline uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* sum adds 16 bit words of big endian, the last one filled up with zero (RFC 1071). */
static inline uint64_t sum(uint64_t so_far, const uint8_t *data, uint32_t bytes)
{
	for (; bytes > 1; bytes -= 2, data += 2) {
		so_far += get16(data);
	}
	return bytes ? so_far + ((uint32_t)data[0] << 8) : so_far;
}

static inline uint16_t fold(uint64_t value)
{
	while (value >> 16) {
		value = (value & 0xffff) + (value >> 16);
	}
	return (uint16_t)~value;
}

#endif
