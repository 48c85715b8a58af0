/* What the kernel has of a socket that decides whether ktsnd can send its packets as the kernel would. */
#ifndef PRELOAD_OPTION_H
#define PRELOAD_OPTION_H

#include <stdbool.h>

/* Which packets of a socket have to go by the kernel, since an option asks for what ktsnd's frames have not. */
enum option_kernels { OPTION_NONE, OPTION_GROUPS, OPTION_ALL };

/* option_kernels compares the socket with one that nobody has changed. errno may be another then. */
enum option_kernels option_kernels(int fd);

/* option_is_udp says whether a socket is one that ktsnd takes. */
bool option_is_udp(int fd);

#endif
