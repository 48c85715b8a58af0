/*
 * What LibKTSN and ktsnd share: a ring in memory for each process, and the messages on
 * the socket by which it is handed over. docs/wire-ktsn.md tells it in words.
 *
 * A packet: the client fills the slot at head and adds one to head → the daemon copies
 * the slot, adds one to tail, and believes nothing of the copy before it has checked it.
 * What is not sent comes back the same way by the error slots, where the socket wants that.
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#define WIRE_MAGIC UINT32_C(0x4e53544b) /* "KTSN" */
#define WIRE_VERSION 2
#define WIRE_SLOTS 256
#define WIRE_ERRORS 64
#define WIRE_SOCKETS 256 /* of one process; they are called 0 to 255 */
#define WIRE_PAYLOAD_MAX 1472 /* of UDP over IPv4 in an Ethernet frame */
#define WIRE_PATH "/run/ktsn/ktsn.sock"

/* One packet, as a process wants it sent. */
struct wire_slot {
	int64_t txtime_ns; /* of the socket's clock */
	uint32_t socket;   /* as WIRE_OPENED named it */
	uint16_t bytes;    /* of payload */
	uint8_t priority;  /* SO_PRIORITY, of the socket or with the message, 0 to 15 */
	uint8_t code;      /* in an error slot: SO_EE_CODE_TXTIME_MISSED or _INVALID_PARAM; else 0 */
	uint8_t to[16]; /* IPv6, or IPv4 mapped into it (RFC 4291 §2.5.5.2) */
	uint16_t to_port;
	uint8_t zeros[14];
	uint8_t payload[WIRE_PAYLOAD_MAX];
};

static_assert(sizeof(struct wire_slot) == 48 + WIRE_PAYLOAD_MAX, "a layout that programs share");

/*
 * The ring: one process writes head, slots and error_tail, the daemon the rest. Heads and
 * tails count for ever.
 */
struct wire_ring {
	uint32_t magic, version, slots, slot_bytes;
	_Alignas(64) _Atomic uint32_t head;
	_Alignas(64) _Atomic uint32_t tail;
	_Atomic int64_t alive_ns; /* CLOCK_MONOTONIC, when the daemon was last seen to live */
	_Alignas(64) _Atomic uint32_t error_head;
	_Alignas(64) _Atomic uint32_t error_tail;
	_Alignas(64) struct wire_slot slot[WIRE_SLOTS];
	struct wire_slot error[WIRE_ERRORS];
};

static_assert(sizeof(struct wire_ring) == 320 + (48 + WIRE_PAYLOAD_MAX) * (WIRE_SLOTS + WIRE_ERRORS), "a layout that programs share");

/* Messages of a SOCK_SEQPACKET socket, each one struct wire_message. */
enum wire_type {
	WIRE_WELCOME = 1, /* daemon: here is your ring, a sealed memfd */
	WIRE_OPEN,        /* client: this UDP socket, passed along, is to send by txtime */
	WIRE_OPENED,      /* daemon: it is called so, or error says why not */
	WIRE_CLOSE,       /* client: it is closed */
};

struct wire_message {
	uint32_t type;
	uint32_t socket;
	int32_t clock;  /* WIRE_OPEN: CLOCK_TAI, CLOCK_MONOTONIC or CLOCK_REALTIME */
	int32_t error;  /* WIRE_OPENED: 0 or a negative errno */
	uint32_t flags; /* WIRE_OPEN: of struct sock_txtime */
	uint32_t zero;
};

static_assert(sizeof(struct wire_message) == 24, "a layout that programs share");

#endif
