package loopback_test

import (
	"errors"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"skerry.dev/skerry/internal/loopback"
)

// Nobody but this machine can ask.
func TestCheckAddress(t *testing.T) {
	for address, want := range map[string]error{
		"127.0.0.1:80": nil, "[::1]:80": nil, "127.9.9.9:1": nil,
		"0.0.0.0:80": loopback.ErrAnywhere, "[::]:80": loopback.ErrAnywhere, "192.0.2.1:80": loopback.ErrAnywhere,
	} {
		if err := loopback.CheckAddress(address); !errors.Is(err, want) {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"", ":80", "localhost:80", "127.0.0.1", "127.0.0.1:http"} {
		if err := loopback.CheckAddress(address); err == nil || errors.Is(err, loopback.ErrAnywhere) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// A document is asked for by a query, and there may be none of what that names.
func TestDocuments(t *testing.T) {
	type fruit struct{ Name string }
	s := httptest.NewServer(loopback.Handler(loopback.Answers{
		Metrics: prometheus.NewRegistry(),
		Phase:   func() (string, bool, bool) { return "well", true, true },
		Documents: map[string]func(func(string) string) any{"/v1/fruit": func(query func(string) string) any {
			if query("name") == "pear" {
				return fruit{"pear"}
			}
			return nil
		}},
	}))
	defer s.Close()
	var got fruit
	at := s.Listener.Addr().String()
	if err := loopback.Fetch(t.Context(), at, "/v1/fruit?name=pear", "garden", &got); err != nil || got.Name != "pear" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := loopback.Fetch(t.Context(), at, "/v1/fruit?name=plum", "garden", &got); !errors.Is(err, loopback.ErrNone) {
		t.Errorf("of what there is none: %v", err)
	}
}
