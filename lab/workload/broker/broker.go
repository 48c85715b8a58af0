// Package broker knows the message brokers that the lab serves as workloads, as
// Debian has them: Mosquitto, which speaks MQTT, and RabbitMQ, which speaks AMQP
// 0-9-1. It finds them on the machine and says how one is started in a node, by
// which command line, environment and configuration; lab/run starts them, lab/load
// speaks their protocols. Start at Find and Program.Plan.
package broker

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// Names of the brokers, as an experiment names them as workloads.
const (
	Mosquitto = "mosquitto"
	RabbitMQ  = "rabbitmq"
)

// Protocols by which they are asked: MQTT is 3.1.1, AMQP is 0-9-1.
const (
	MQTT = "mqtt"
	AMQP = "amqp"
)

// Names lists the brokers.
func Names() []string { return []string{Mosquitto, RabbitMQ} }

// Protocol of a broker; empty for a workload that is none.
func Protocol(name string) string {
	switch name {
	case Mosquitto:
		return MQTT
	case RabbitMQ:
		return AMQP
	}
	return ""
}

// ErrUnknown is returned for a name that is no broker.
var ErrUnknown = errors.New("no such broker")

// Need is a program, with the package of Debian that has it.
type Need struct{ Program, Package string }

// Needs is what a broker needs; the zero Need for a workload that is none.
func Needs(name string) Need {
	switch name {
	case Mosquitto:
		return Need{"mosquitto", "mosquitto"}
	case RabbitMQ:
		return Need{"rabbitmq-server", "rabbitmq-server"}
	}
	return Need{}
}

// Program is a broker that is here.
type Program struct {
	// Name of the broker.
	Name string
	// Path of what is started.
	Path string
	// Version as the program, or its folder, says it.
	Version string
}

// MissingError says that a broker is not here.
type MissingError struct {
	Name string
	Need Need
	// Err is what is wrong with a program that is there; nil for a missing one.
	Err error
}

// Error names the workload and its program.
func (e *MissingError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("workload %s: %v", e.Name, e.Err)
	}
	return fmt.Sprintf("workload %s needs the program %s, which is not installed", e.Name, e.Need.Program)
}

// Unwrap gives what is wrong with a program that is there.
func (e *MissingError) Unwrap() error { return e.Err }

var errVersion = errors.New("unknown program of that name")

// Missing looks whether the program of a broker is on the path, without starting it.
// The error is a *MissingError or ErrUnknown.
func Missing(name string) error {
	_, err := look(name)
	return err
}

// look is the path of a broker's program.
func look(name string) (path string, err error) {
	need := Needs(name)
	if need == (Need{}) {
		return "", fmt.Errorf("%w: %q", ErrUnknown, name)
	}
	if path, err = exec.LookPath(need.Program); err != nil {
		return "", &MissingError{Name: name, Need: need}
	}
	return path, nil
}

// Find is a broker of the machine. The error is a *MissingError or ErrUnknown.
func Find(ctx context.Context, name string) (Program, error) {
	path, err := look(name)
	switch {
	case err != nil:
		return Program{}, err
	case name == RabbitMQ:
		return findRabbitMQ(path), nil
	}
	return findMosquitto(ctx, path)
}

// Place is where a broker listens, in a node.
type Place struct {
	IP   string
	Port int
	// Dir is an absolute, empty folder for its configuration, and for its data in
	// one below.
	Dir string
}

// dataDir is the folder below that of a place that holds nothing worth keeping.
const dataDir = "data"

// Data is the folder that the broker keeps its data in, to be removed after it.
func (p Place) Data() string { return filepath.Join(p.Dir, dataDir) }

// Invocation is how a broker is started.
type Invocation struct {
	Args []string
	// Env is added to the environment.
	Env []string
	// Files to write first, by name, into the folder of the place.
	Files map[string]string
	// Start bounds how long it may take to answer, Grace how long to end.
	Start, Grace time.Duration
}

// Plan says how the broker is started at a place.
func (p Program) Plan(at Place) Invocation {
	if p.Name == RabbitMQ {
		return p.planRabbitMQ(at)
	}
	return p.planMosquitto(at)
}

const mosquittoConfig = "mosquitto.conf"

func findMosquitto(ctx context.Context, path string) (Program, error) {
	// It ends with a failure when it is asked; what it says is enough.
	said, err := exec.CommandContext(ctx, path, "-h").CombinedOutput()
	version := regexp.MustCompile(`mosquitto version (\S+)`).FindSubmatch(said)
	if version == nil {
		err = fmt.Errorf("%s -h says no version: %w", path, errors.Join(err, errVersion))
		return Program{}, &MissingError{Name: Mosquitto, Need: Needs(Mosquitto), Err: err}
	}
	return Program{Name: Mosquitto, Path: path, Version: string(version[1])}, nil
}

// planMosquitto keeps nothing on disk. Without TCP_NODELAY, which is its default,
// the second of two packets waits for the acknowledgement of the first: 40 ms, now
// and then.
func (p Program) planMosquitto(at Place) Invocation {
	config := fmt.Sprintf(`listener %d %s
allow_anonymous true
persistence false
set_tcp_nodelay true
log_dest stderr
log_type error
log_type warning
`, at.Port, at.IP)
	return Invocation{
		Args:  []string{p.Path, "-c", filepath.Join(at.Dir, mosquittoConfig)},
		Files: map[string]string{mosquittoConfig: config},
		Start: 20 * time.Second, Grace: time.Second,
	}
}
