package broker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/workload/broker"
)

// here makes a path of which programs are scripts, and gives its folder.
func here(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	return dir
}

// Every broker has a protocol, a program and a package; other workloads have none.
func TestNames(t *testing.T) {
	want := map[string]string{"mosquitto": "mqtt", "rabbitmq": "amqp"}
	for _, name := range broker.Names() {
		if got := broker.Protocol(name); got != want[name] || got == "" {
			t.Errorf("%s speaks %q, want %q", name, got, want[name])
		}
		if need := broker.Needs(name); need.Program == "" || need.Package == "" {
			t.Errorf("%s needs %+v", name, need)
		}
	}
	if len(broker.Names()) != len(want) {
		t.Errorf("brokers %q", broker.Names())
	}
	if p, n := broker.Protocol("payload-echo"), broker.Needs("payload-echo"); p != "" || n != (broker.Need{}) {
		t.Errorf("payload-echo speaks %q and needs %+v", p, n)
	}
}

func TestFind(t *testing.T) {
	dir := here(t, map[string]string{"mosquitto": "echo 'mosquitto version 2.0.11'; exit 3", "rabbitmq-server": "exit 1"})
	p, err := broker.Find(t.Context(), broker.Mosquitto)
	if want := (broker.Program{Name: "mosquitto", Path: filepath.Join(dir, "mosquitto"), Version: "2.0.11"}); err != nil || p != want {
		t.Errorf("got %+v, %v, want %+v", p, err, want)
	}
	// Debian's program on the path is a wrapper: where the server itself is, it counts.
	p, err = broker.Find(t.Context(), broker.RabbitMQ)
	if err != nil || p.Name != "rabbitmq" || p.Path != filepath.Join(dir, "rabbitmq-server") && !strings.HasPrefix(p.Path, "/usr/lib/rabbitmq/") {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, name := range broker.Names() {
		if err := broker.Missing(name); err != nil {
			t.Error(err)
		}
	}
}

// A broker that is missing is named, with what brings it.
func TestMissing(t *testing.T) {
	here(t, nil)
	for name, want := range map[string]broker.MissingError{
		broker.Mosquitto: {Name: "mosquitto", Need: broker.Need{Program: "mosquitto", Package: "mosquitto"}},
		broker.RabbitMQ:  {Name: "rabbitmq", Need: broker.Need{Program: "rabbitmq-server", Package: "rabbitmq-server"}},
	} {
		_, err := broker.Find(t.Context(), name)
		for _, err := range []error{err, broker.Missing(name)} {
			m, ok := errors.AsType[*broker.MissingError](err)
			if !ok || *m != want || err.Error() != "workload "+name+" needs the program "+want.Need.Program+", which is not installed" {
				t.Errorf("%s: got %v", name, err)
			}
		}
	}
	for _, err := range []error{broker.Missing("emqx"), second(broker.Find(t.Context(), "emqx"))} {
		if !errors.Is(err, broker.ErrUnknown) {
			t.Errorf("an unknown broker: %v", err)
		}
	}
	here(t, map[string]string{"mosquitto": "echo another program"})
	_, err := broker.Find(context.Background(), broker.Mosquitto)
	if _, ok := errors.AsType[*broker.MissingError](err); !ok || !strings.Contains(err.Error(), "says no version") {
		t.Errorf("another program of that name: %v", err)
	}
}

func second(_ broker.Program, err error) error { return err }

// A broker listens at its place alone, and keeps what it writes below its folder.
func TestPlan(t *testing.T) {
	at := broker.Place{IP: "10.1.0.2", Port: 8080, Dir: "/runs/x/service"}
	plan := broker.Program{Name: broker.Mosquitto, Path: "/usr/sbin/mosquitto"}.Plan(at)
	if want := []string{"/usr/sbin/mosquitto", "-c", "/runs/x/service/mosquitto.conf"}; !slices.Equal(plan.Args, want) {
		t.Errorf("command %q", plan.Args)
	}
	if config := plan.Files["mosquitto.conf"]; !strings.HasPrefix(config, "listener 8080 10.1.0.2\n") || strings.Count(config, "listener") != 1 ||
		!strings.Contains(config, "\npersistence false\n") {
		t.Errorf("configuration:\n%s", config)
	}
	plan = broker.Program{Name: broker.RabbitMQ, Path: "/usr/lib/rabbitmq/bin/rabbitmq-server"}.Plan(at)
	if config := plan.Files["rabbitmq.conf"]; !strings.HasPrefix(config, "listeners.tcp.1 = 10.1.0.2:8080\n") || strings.Count(config, "listeners.") != 1 {
		t.Errorf("configuration:\n%s", config)
	}
	for _, e := range plan.Env {
		name, value, _ := strings.Cut(e, "=")
		if strings.HasPrefix(value, "/") && !strings.HasPrefix(value, at.Dir+"/") {
			t.Errorf("%s lies outside of the folder: %s", name, value)
		}
	}
	for _, name := range []string{"HOME", "RABBITMQ_MNESIA_BASE", "RABBITMQ_CONFIG_FILE", "RABBITMQ_CONF_ENV_FILE", "RABBITMQ_ENABLED_PLUGINS_FILE"} {
		if !slices.ContainsFunc(plan.Env, func(e string) bool { return strings.HasPrefix(e, name+"=") }) {
			t.Errorf("%s is the machine's", name)
		}
	}
}
