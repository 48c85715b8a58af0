/* What the daemon asks of the machine that it runs on. What is refused is said on stderr, and no error. */
#ifndef KTSND_HOST_H
#define KTSND_HOST_H

/* host_settle has the kernel disturb it as little as it can: awake cores, locked memory, one core of its own unless cpu is -1. */
void host_settle(int cpu);

/* host_drop gives up all capabilities but that to lock the memory of clients: what needs another is open already. */
void host_drop(void);

/* host_ready tells systemd that it serves (sd_notify(3)), if that is who started it. */
void host_ready(void);

#endif
