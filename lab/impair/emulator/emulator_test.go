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

func (f *fake) Change(d []impair.Direction) (map[string]impair.Counters, error) {
	f.set = append(f.set, d...)
	return map[string]impair.Counters{"c1>c2": {Packets: 2}}, f.fail
}

func (f *fake) Counters() (map[string]impair.Counters, error) {
	return map[string]impair.Counters{"c1>c2": {Packets: 3, Lost: 1}}, f.fail
}

func (f *fake) Close() error { return nil }

func (f *fake) gaps() impair.Gaps { return impair.Gaps{MaxNs: 5e6, Count: 2} }

// dialFake answers orders on a unix socket with a fake back end; gaps may be nil.
func dialFake(t *testing.T, f *fake, gaps func() impair.Gaps) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer((&service{backend: f, name: Userspace, fifo: true, gaps: gaps}).routes())
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
	client := dialFake(t, f, f.gaps)
	want := []impair.Direction{{
		Name: "c1>c2", Unit: impair.UnitPacket, Seed: 1 << 63,
		Match:      impair.Match{In: "c1", Out: "c2"},
		Impairment: impair.Impairment{Delay: 5e6, Jitter: 1e6, Loss: 0.0008, Rate: 1e9, Unordered: true},
		Then:       []impair.Impairment{{Delay: 2e6, Reorder: 0.01, Burst: impair.Burst{Enter: 0.01, Leave: 0.5}, Duplicate: 0.02, Corrupt: 0.03}},
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

func TestChangesArrive(t *testing.T) {
	f := &fake{}
	client := dialFake(t, f, f.gaps)
	want := []impair.Direction{{Name: "c1>c2", Impairment: impair.Impairment{Loss: 1}}}
	ended, err := client.Change(t.Context(), want)
	if err != nil || !reflect.DeepEqual(f.set, want) || ended["c1>c2"].Packets != 2 {
		t.Errorf("the back end was told %+v, and says %+v, %v", f.set, ended, err)
	}
	f.fail = errors.New("no such device")
	if _, err := client.Change(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "change links: no such device") {
		t.Errorf("got %v", err)
	}
}

// A back end that cannot tell gaps is not one without any.
func TestGapsThatAreKnownArrive(t *testing.T) {
	f := &fake{}
	status, err := dialFake(t, f, f.gaps).Status(t.Context())
	if err != nil || status.Gaps == nil || *status.Gaps != f.gaps() {
		t.Errorf("gaps are %+v, %v, want %+v", status.Gaps, err, f.gaps())
	}
	if status, err = dialFake(t, f, nil).Status(t.Context()); err != nil || status.Gaps != nil {
		t.Errorf("gaps are %+v, %v, want none known", status.Gaps, err)
	}
}

func TestErrorsOfTheBackEndArrive(t *testing.T) {
	client := dialFake(t, &fake{fail: errors.New("no such device")}, nil)
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
