package emulator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"skerry.dev/skerry/lab/impair"
)

// orderTimeout bounds one order; the emulator answers in milliseconds.
const orderTimeout = 5 * time.Second

// Client gives orders to an emulator.
type Client struct{ http *http.Client }

// Dial makes a client for the emulator that answers on the unix socket at path.
// It connects at the first order.
func Dial(path string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &Client{&http.Client{Timeout: orderTimeout, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Set puts exactly these directions into force; their counters start anew.
func (c *Client) Set(ctx context.Context, directions []impair.Direction) error {
	body, err := json.Marshal(directions)
	if err != nil {
		return fmt.Errorf("set links: %w", err)
	}
	if _, err := c.order(ctx, http.MethodPut, body); err != nil {
		return fmt.Errorf("set links: %w", err)
	}
	return nil
}

// Change puts exactly these directions into force, and those of a name that is
// there go on: they count on, and what is under way arrives as it would have. It
// tells the counters of what was in force until then.
func (c *Client) Change(ctx context.Context, directions []impair.Direction) (ended map[string]impair.Counters, err error) {
	body, err := json.Marshal(directions)
	if err == nil {
		body, err = c.order(ctx, http.MethodPatch, body)
	}
	if err == nil {
		err = json.Unmarshal(body, &ended)
	}
	if err != nil {
		return nil, fmt.Errorf("change links: %w", err)
	}
	return ended, nil
}

// Status asks for the back end and the counters.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	body, err := c.order(ctx, http.MethodGet, nil)
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if err != nil {
		return Status{}, fmt.Errorf("read link counters: %w", err)
	}
	return s, nil
}

func (c *Client) order(ctx context.Context, method string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://emulator"+directionsPath, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s", strings.TrimSpace(string(answer)))
	}
	return answer, nil
}
