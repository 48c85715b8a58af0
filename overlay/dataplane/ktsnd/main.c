/* ktsnd: packets of containers leave at their time, within their window of 802.1Qbv. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../frame/frame.h"
#include "../wire/control.h"
#include "daemon.h"
#include "host.h"

/* Every option: its bounds, what it is without it, and what it does. */
enum option_kind { TEXT, NUMBER, SWITCH };

struct option_row {
	const char *name;
	enum option_kind kind;
	int64_t least, most;
	union {
		const char *text;
		int64_t number;
	};
	const char *help;
};

enum { PORT, CONTROL, CPU, LINK, GUARD, HORIZON, GRACE, LATE, PACKETS, NAP, TAGGED, STRATEGY, FROM, VNI, TUNNEL, OPTIONS };

static struct option_row options[OPTIONS] = {
	[PORT] = { "port", TEXT, 0, 0, { .text = "" }, "where frames leave: af_packet:INTERFACE, af_xdp:INTERFACE or null" },
	[CONTROL] = { "control", TEXT, 0, 0, { .text = CONTROL_PATH }, "path of the control socket" },
	[CPU] = { "cpu", NUMBER, -1, 1023, { .number = -1 }, "core that it keeps to; -1: any" },
	[LINK] = { "link-bps", NUMBER, 0, INT64_C(1000000000000), { .number = 1000000000 }, "rate of the link in bit/s; 0: a frame takes no time" },
	[GUARD] = { "guard-ns", NUMBER, 0, 10000000, { .number = 5000 }, "guard band before a gate shuts, beside the frame itself" },
	[HORIZON] = { "horizon-ns", NUMBER, 1, INT64_C(60000000000), { .number = INT64_C(10000000000) }, "how far ahead a transmission time may lie" },
	[GRACE] = { "grace-ns", NUMBER, 0, 1000000000, { .number = 0 }, "how far past a transmission time may be when the packet comes" },
	[LATE] = { "late-ns", NUMBER, 0, INT64_C(10000000000), { .number = 10000000 }, "how long after its time a packet may leave" },
	[PACKETS] = { "packets", NUMBER, 64, 65536, { .number = 8192 }, "packets that may wait; attachments have equal shares" },
	[NAP] = { "nap-ns", NUMBER, 0, 10000000, { .number = 0 }, "how long it may sleep when nothing is due; 0: it polls on and uses a core" },
	[TAGGED] = { "tagged", SWITCH, 0, 1, { .number = 0 }, "frames carry their priority in a tag of 802.1Q" },
	[STRATEGY] = { "strategy", TEXT, 0, 0, { .text = "etf" }, "which packet of a class is next: etf, that of the earliest time, or fifo" },
	[FROM] = { "tunnel-from", TEXT, 0, 0, { .text = "" }, "address of this node, for routes by VXLAN" },
	[VNI] = { "vni", NUMBER, 0, FRAME_VNI_MAX, { .number = 1 }, "VXLAN's network identifier" },
	[TUNNEL] = { "tunnel-port", NUMBER, 1, UINT16_MAX, { .number = FRAME_VXLAN_PORT }, "VXLAN's UDP port" },
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	stop = number;
}

static void usage(FILE *to)
{
	fprintf(to, "Usage: ktsnd --port KIND[:INTERFACE] [--OPTION VALUE]...\n\n"
		    "Sends packets of processes that LibKTSN is loaded in at their SO_TXTIME, in the\n"
		    "windows of a gate control list (IEEE 802.1Qbv). 'skerry overlay' speaks to it.\n\n");
	for (int i = 0; i < OPTIONS; i++) {
		const struct option_row *o = &options[i];

		if (o->kind == NUMBER) {
			fprintf(to, "  --%-12s %s (%ld to %ld; %ld)\n", o->name, o->help, o->least, o->most, o->number);
		} else {
			fprintf(to, "  --%-12s %s%s%s%s\n", o->name, o->help, o->kind == TEXT && *o->text ? " (" : "",
				o->kind == TEXT ? o->text : "", o->kind == TEXT && *o->text ? ")" : "");
		}
	}
}

static int bad(const char *what, const char *name, const char *value)
{
	fprintf(stderr, "ktsnd: error: %s --%s %s\nktsnd: hint: ktsnd --help tells what it takes\n", what, name, value);
	return 2;
}

/* set takes the value of an option. Returns 0, or the exit status. */
static int set(struct option_row *o, const char *value)
{
	char *end;
	long long number;

	if (o->kind == SWITCH) {
		o->number = 1;
		return 0;
	}
	if (o->kind == TEXT) {
		o->text = value;
		return 0;
	}
	errno = 0;
	number = strtoll(value, &end, 10);
	if (errno || end == value || *end || number < o->least || number > o->most) {
		return bad("out of range or no number:", o->name, value);
	}
	o->number = number;
	return 0;
}

/* parse reads the command line. Returns 0, or the exit status; *done when all is said. */
static int parse(int argc, char **argv, bool *done)
{
	struct option rows[OPTIONS + 2] = { 0 };
	int index, got, err;

	for (int i = 0; i < OPTIONS; i++) {
		rows[i] = (struct option){ options[i].name, options[i].kind == SWITCH ? no_argument : required_argument, NULL, 0 };
	}
	rows[OPTIONS] = (struct option){ "help", no_argument, NULL, 'h' };
	while ((got = getopt_long(argc, argv, "h", rows, &index)) != -1) {
		if (got == 'h') {
			usage(stdout);
			*done = true;
			return 0;
		}
		if (got == '?') {
			fprintf(stderr, "ktsnd: hint: ktsnd --help tells what it takes\n");
			return 2;
		}
		err = set(&options[index], optarg);
		if (err) {
			return err;
		}
	}
	if (optind < argc) {
		return bad("an argument without an option; the first is", "", argv[optind]);
	}
	return *options[PORT].text ? 0 : bad("it needs", "port", "KIND[:INTERFACE]");
}

/* tunnel_from reads an address, as of struct frame_end. */
static bool tunnel_from(const char *text, uint8_t ip[16])
{
	if (!*text || inet_pton(AF_INET6, text, ip) == 1) {
		return true;
	}
	memset(ip + 10, 0xff, 2);
	return inet_pton(AF_INET, text, ip + 12) == 1;
}

int main(int argc, char **argv)
{
	const struct sigaction act = { .sa_handler = on_signal };
	struct daemon_config config = { 0 };
	struct daemon *d;
	bool done = false;
	int err = parse(argc, argv, &done);

	if (err || done) {
		return err;
	}
	config.sched.strategy = queue_strategy_of(options[STRATEGY].text);
	if (!config.sched.strategy) {
		return bad("there is no such", options[STRATEGY].name, options[STRATEGY].text);
	}
	if (!tunnel_from(options[FROM].text, config.tunnel.from)) {
		return bad("it is no IP address:", options[FROM].name, options[FROM].text);
	}
	err = port_open(&config.port, options[PORT].text);
	if (err == -EINVAL) {
		return bad("there is no such", options[PORT].name, options[PORT].text);
	}
	if (err) {
		fprintf(stderr, "ktsnd: error: open port %s: %s\n", options[PORT].text, strerror(-err));
		return 1;
	}
	config.control = options[CONTROL].text;
	config.nap_ns = options[NAP].number;
	config.tagged = options[TAGGED].number;
	config.tunnel.vni = (uint32_t)options[VNI].number;
	config.tunnel.port = (uint16_t)options[TUNNEL].number;
	config.sched = (struct sched_config){
		.strategy = config.sched.strategy,
		.link_bps = options[LINK].number,
		.guard_ns = options[GUARD].number,
		.horizon_ns = options[HORIZON].number,
		.grace_ns = options[GRACE].number,
		.late_max_ns = options[LATE].number,
		.packets = (uint32_t)options[PACKETS].number,
	};
	err = daemon_new(&d, &config);
	if (err) {
		fprintf(stderr, "ktsnd: error: listen at %s: %s\n", config.control, strerror(-err));
		port_close(config.port);
		return 1;
	}
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	host_settle((int)options[CPU].number);
	host_drop();
	host_ready();
	fprintf(stderr, "ktsnd: ready at %s\n", config.control);
	daemon_run(d, &stop);
	daemon_free(d);
	port_close(config.port);
	return 0;
}
