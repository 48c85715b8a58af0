package transport_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"skerry.dev/skerry/fabric/transport"
)

var asked = transport.Request{
	Target: transport.Target{Namespace: "default", Name: "dns", Port: 53, Protocol: transport.UDP},
	Source: map[string]string{"label/app": "cart"}, Confirm: true,
}

// A request over the bound is not told.
func TestRequest(t *testing.T) {
	text, err := transport.EncodeRequest(asked)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := transport.DecodeRequest(text); err != nil || !reflect.DeepEqual(got, asked) {
		t.Errorf("got %+v, %v", got, err)
	}
	long := asked
	long.Source = map[string]string{"x": strings.Repeat("y", transport.RequestBytes)}
	if _, err := transport.EncodeRequest(long); err == nil {
		t.Error("a message over the bound is made")
	}
}

func FuzzDecodeRequest(f *testing.F) {
	text, err := transport.EncodeRequest(asked)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte{0xa1, 0x18, 0x63})
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := transport.DecodeRequest(text)
		if err != nil {
			if !errors.Is(err, transport.ErrProtocol) {
				t.Errorf("%v is no breach", err)
			}
			return
		}
		if len(r.Source) == 0 {
			r.Source = nil // of none and of nothing the same is told
		}
		again, err := transport.EncodeRequest(r)
		if err != nil {
			const leftOut = 64 // bytes of the target's fields, which are written though they are empty
			if len(text) < transport.RequestBytes-leftOut {
				t.Fatal(err)
			}
			return
		}
		if back, err := transport.DecodeRequest(again); err != nil || !reflect.DeepEqual(back, r) {
			t.Errorf("%+v became %+v, %v", r, back, err)
		}
	})
}
