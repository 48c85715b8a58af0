package emulator

import (
	"context"
	"errors"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"skerry.dev/skerry/lab/impair"
)

// fake is a back end that remembers.
type fake struct {
	set  []impair.Direction
	fail error
}

func (f *fake) Set(d []impair.Direction) error {
	f.set = d
	return f.fail
}

func (f *fake) Counters() (map[string]impair.Counters, error) {
	return map[string]impair.Counters{"c1>c2": {Packets: 3, Lost: 1}}, f.fail
}

func (f *fake) Close() error { return nil }

// dialFake answers orders on a unix socket with a fake back end.
func dialFake(t *testing.T, f *fake) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer((&service{backend: f, name: Userspace, fifo: true}).routes())
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return Dial(path)
}

func TestOrdersArriveWhole(t *testing.T) {
	f := &fake{}
	client := dialFake(t, f)
	want := []impair.Direction{{
		Name: "c1>c2", Unit: impair.UnitPacket, Seed: 1 << 63,
		Match:      impair.Match{In: "c1", Out: "c2"},
		Impairment: impair.Impairment{Delay: 5e6, Jitter: 1e6, Loss: 0.0008, Rate: 1e9, Reorder: true},
	}}
	if err := client.Set(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f.set, want) {
		t.Errorf("the back end was told %+v, want %+v", f.set, want)
	}
	status, err := client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Backend != Userspace || !status.FIFO || status.Pid == 0 || status.Counters["c1>c2"].Lost != 1 {
		t.Errorf("status is %+v", status)
	}
}

func TestErrorsOfTheBackEndArrive(t *testing.T) {
	client := dialFake(t, &fake{fail: errors.New("no such device")})
	if err := client.Set(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "set links: no such device") {
		t.Errorf("set: %v", err)
	}
	if _, err := client.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "no such device") {
		t.Errorf("status: %v", err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	client := Dial(filepath.Join(t.TempDir(), "nobody"))
	if _, err := client.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

func TestUnknownBackEnd(t *testing.T) {
	err := Serve(context.Background(), filepath.Join(t.TempDir(), "s"), "magic")
	if err == nil || !strings.Contains(err.Error(), `no back end "magic"`) {
		t.Errorf("got %v", err)
	}
}
