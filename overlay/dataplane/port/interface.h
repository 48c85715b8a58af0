/* What ports ask of an interface. */
#ifndef PORT_INTERFACE_H
#define PORT_INTERFACE_H

#include <stdint.h>

/* interface_of writes the MAC of an interface, and its index unless that is NULL. Returns 0 or -errno. */
int interface_of(const char *name, uint8_t mac[6], int *index);

#endif
