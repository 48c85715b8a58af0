/* What the daemon does for whoever may open its control socket. */
#ifndef KTSND_CONTROL_H
#define KTSND_CONTROL_H

struct daemon;

/* control_answer takes one request, carries it out and answers it; or closes sock at its end. */
void control_answer(struct daemon *d, int sock);

#endif
