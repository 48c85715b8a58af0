/*
 * Who has this address? Requests of ARP (RFC 826) and of IPv6's neighbour discovery (RFC
 * 4861 §7.2), and the answers to them. Bytes in, bytes out.
 */
#ifndef FRAME_NEIGHBOUR_H
#define FRAME_NEIGHBOUR_H

#include <stdbool.h>
#include <stdint.h>

#define NEIGHBOUR_BYTES 86 /* room for an answer */

/* What is asked: the address, as of struct frame_end, and who asks. */
struct neighbour_question {
	uint8_t wanted[16];
	uint8_t asker[16]; /* all zeros behind the family's prefix: nobody yet (RFC 5227, RFC 4862 §5.4) */
	uint8_t asker_mac[6];
};

/* neighbour_read reads a frame. Returns false for one that does not ask, or is not whole. */
bool neighbour_read(struct neighbour_question *q, const uint8_t *frame, uint32_t bytes);

/* neighbour_write writes the answer that a MAC has what is asked for, and returns its length. */
uint32_t neighbour_write(uint8_t out[NEIGHBOUR_BYTES], const struct neighbour_question *q, const uint8_t mac[6]);

#endif
