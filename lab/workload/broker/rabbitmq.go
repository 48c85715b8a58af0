package broker

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

const (
	rabbitConfig  = "rabbitmq.conf"
	rabbitEnv     = "rabbitmq-env.conf"
	rabbitPlugins = "enabled_plugins"
	rabbitNames   = "erl_inetrc"
)

// hostsAlone has Erlang look names up in the node's hosts file. A node reaches no
// name server: RabbitMQ would wait 10 s for one as it starts, and ask it by way of
// the network that is measured.
const hostsAlone = `{file, hosts, "/etc/hosts"}.
{lookup, [file]}.
`

// debianServer is the server itself. What Debian has on the path becomes the
// system's user rabbitmq first, who has no right to the folder of a run.
const debianServer = "/usr/lib/rabbitmq/bin/rabbitmq-server"

// inVersion is the version in the path of an installed server: asking the program
// takes a second.
var inVersion = regexp.MustCompile(`/rabbitmq_server-([^/]+)/`)

func findRabbitMQ(path string) Program {
	if _, err := os.Stat(debianServer); err == nil {
		path = debianServer
	}
	p := Program{Name: RabbitMQ, Path: path}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		if version := inVersion.FindStringSubmatch(target); version != nil {
			p.Version = version[1]
		}
	}
	return p
}

// planRabbitMQ has a node of its own: name, cookie, data and configuration, with
// Erlang's port mapper and the port for other nodes on the loopback interface. The
// load is the user guest, whom RabbitMQ admits from loopback alone by default.
func (p Program) planRabbitMQ(at Place) Invocation {
	config := fmt.Sprintf(`listeners.tcp.1 = %s:%d
loopback_users = none
log.console = true
log.console.level = warning
log.connection.level = error
log.file = false
`, at.IP, at.Port)
	in := func(name string) string { return filepath.Join(at.Dir, name) }
	data := func(name string) string { return filepath.Join(at.Data(), name) }
	return Invocation{
		Args: []string{p.Path},
		Env: []string{
			"HOME=" + at.Data(), // of the cookie
			"ERL_EPMD_ADDRESS=127.0.0.1",
			"ERL_INETRC=" + in(rabbitNames),
			"RABBITMQ_NODENAME=rabbit@localhost",
			"RABBITMQ_CONF_ENV_FILE=" + in(rabbitEnv), // in place of the machine's
			"RABBITMQ_CONFIG_FILE=" + in(rabbitConfig),
			"RABBITMQ_ADVANCED_CONFIG_FILE=" + in("advanced.config"), // there is none
			"RABBITMQ_ENABLED_PLUGINS_FILE=" + in(rabbitPlugins),
			"RABBITMQ_MNESIA_BASE=" + data("mnesia"),
			"RABBITMQ_LOG_BASE=" + data("log"),
			"RABBITMQ_SCHEMA_DIR=" + data("schema"),
			"RABBITMQ_GENERATED_CONFIG_DIR=" + data("config"),
			"RABBITMQ_PID_FILE=" + data("rabbitmq.pid"),
			"RABBITMQ_LOGS=-",
			"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1}",
		},
		Files: map[string]string{rabbitConfig: config, rabbitEnv: "", rabbitPlugins: "[].\n", rabbitNames: hostsAlone},
		Start: time.Minute, Grace: 10 * time.Second,
	}
}
