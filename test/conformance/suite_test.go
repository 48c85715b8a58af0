package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// What upstream's reporter posts becomes lines, of which there are not too many.
func TestProgress(t *testing.T) {
	const specs = 20
	var out strings.Builder
	now := time.Unix(0, 0)
	p := &progress{w: &out, now: func() time.Time { return now }, began: now}
	post := func(body string) {
		p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	}
	post(fmt.Sprintf(`{"msg":"","total":%d}`, specs))
	post(`{"msg":"Test Suite starting"}`)
	post(`nonsense`)
	for i := range specs {
		now = now.Add(2 * time.Second)
		verb := "PASSED"
		if i == 3 {
			verb = "FAILED"
		}
		post(fmt.Sprintf(`{"msg":"%s [sig-a] spec %d","total":0,"completed":1}`, verb, i))
	}
	const want = `conformance: 1 of 20 specs, 0 failed
conformance: failed: [sig-a] spec 3
conformance: 9 of 20 specs, 1 failed, about 22s left
conformance: 17 of 20 specs, 1 failed, about 6s left
conformance: 20 of 20 specs, 1 failed
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}
