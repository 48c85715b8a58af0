// Package control speaks to ktsnd on its control socket: it attaches network namespaces,
// tells routes, loads gate control lists and asks what became of packets. It decides
// nothing. overlay/dataplane/wire/control.h has the bytes. Start at Dial.
package control

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Path is where ktsnd listens unless it is told otherwise.
const Path = "/run/ktsn/control.sock"

// answerWithin bounds a request; the daemon looks at its socket once a millisecond.
const answerWithin = 2 * time.Second

// ErrRefused is returned when the daemon does not do what is asked for; the daemon's own
// words follow.
var ErrRefused = errors.New("refused by ktsnd")

// Client is a connection to a daemon. One goroutine at a time uses it.
type Client struct {
	conn *net.UnixConn
}

// Dial connects to the daemon at a path.
func Dial(ctx context.Context, path string) (*Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unixpacket", path)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn.(*net.UnixConn)}, nil // as "unixpacket" always gives
}

// Close ends the connection. What was asked for stays.
func (c *Client) Close() error { return c.conn.Close() }

// Attachment is a network namespace whose processes send through the daemon.
type Attachment struct {
	// Name of it, up to 63 bytes; Path is where LibKTSN connects, up to 103.
	Name, Path string
	// MAC of its interface; without one the daemon's port has it.
	MAC net.HardwareAddr
	// Addresses that its processes may send from, up to 8.
	Addresses []netip.Addr
	// Interface at which its end of the cable is heard, in the caller's own namespace; the
	// daemon answers there who has an address that it has a route to. It may be empty.
	Interface string
}

// Attach has the daemon listen at the attachment's path.
func (c *Client) Attach(a Attachment) error {
	var body attach
	if len(a.Name) >= len(body.Name) || len(a.Path) >= len(body.Path) || len(a.Addresses) > addressesMax {
		return fmt.Errorf("attachment %q: a name has up to 63 bytes, a path 103, and there are up to %d addresses", a.Name, addressesMax)
	}
	copy(body.Name[:], a.Name)
	copy(body.Path[:], a.Path)
	copy(body.MAC[:], a.MAC)
	body.Addresses = uint16(len(a.Addresses)) //nolint:gosec // at most addressesMax
	for i, address := range a.Addresses {
		body.Address[i] = address.As16()
	}
	if a.Interface == "" {
		_, err := c.ask(requestAttach, body)
		return err
	}
	socket, err := questions(a.Interface)
	if err != nil {
		return fmt.Errorf("attachment %q: hear who asks at %s: %w", a.Name, a.Interface, err)
	}
	_, err = c.ask(requestAttach, body, socket)
	return errors.Join(err, unix.Close(socket))
}

// Detach ends an attachment, and with it the connections of its processes.
func (c *Client) Detach(name string) error {
	var body attach
	copy(body.Name[:len(body.Name)-1], name)
	_, err := c.ask(requestDetach, body)
	return err
}

// Hop is where packets to an address leave for.
type Hop struct {
	// MAC of the receiver, or of the gateway to it; without one it is nowhere.
	MAC net.HardwareAddr
	// Node that a tunnel leads to, and its MAC, or that of the gateway to it; without them
	// there is no tunnel.
	Node    netip.Addr
	NodeMAC net.HardwareAddr
}

// Route tells where packets to an address leave for.
func (c *Client) Route(to netip.Addr, hop Hop) error {
	body := route{Address: to.As16()}
	copy(body.MAC[:], hop.MAC)
	if hop.Node.IsValid() {
		body.Node = hop.Node.As16()
		copy(body.NodeMAC[:], hop.NodeMAC)
	}
	_, err := c.ask(requestRoute, body)
	return err
}

// Entry is how gates stay for a time: bit c of Open is the gate of class c.
type Entry struct {
	Open uint8
	For  time.Duration
}

// Schedule is a gate control list; BaseNs is a time of CLOCK_TAI.
type Schedule struct {
	BaseNs           int64
	Cycle, Extension time.Duration
	Entries          []Entry
}

// Load has a list follow at its base time, and returns when that is, in ns of CLOCK_TAI;
// 0 where it is in force already.
func (c *Client) Load(s Schedule) (changeNs int64, err error) {
	body := schedule{BaseNs: s.BaseNs, CycleNs: int64(s.Cycle), ExtensionNs: int64(s.Extension), Entries: uint32(len(s.Entries))} //nolint:gosec // a few
	if len(s.Entries) > entriesMax {
		return 0, fmt.Errorf("a gate control list has up to %d entries, this one %d", entriesMax, len(s.Entries))
	}
	for i, e := range s.Entries {
		if e.For < 0 || e.For > math.MaxUint32 {
			return 0, fmt.Errorf("entry %d lasts %s: an interval is at most %s", i+1, e.For, time.Duration(math.MaxUint32))
		}
		body.Entry[i] = entry{IntervalNs: uint32(e.For), Open: uint32(e.Open)} //nolint:gosec // bounded above
	}
	a, err := c.ask(requestSchedule, body)
	if err != nil {
		return 0, err
	}
	return a.ChangeNs, nil
}

// Status tells what there is and what became of packets since the daemon began.
func (c *Client) Status() (Status, error) {
	a, err := c.ask(requestStatus, [0]byte{})
	if err != nil {
		return Status{}, err
	}
	return a.status(), nil
}

// ask sends a request, with descriptors of files, and takes its answer.
func (c *Client) ask(kind uint32, body any, files ...int) (*answer, error) {
	var packed bytes.Buffer
	if err := binary.Write(&packed, binary.NativeEndian, body); err != nil {
		return nil, err
	}
	q := request{Version: version, Type: kind}
	copy(q.Body[:], packed.Bytes())
	var out bytes.Buffer
	if err := binary.Write(&out, binary.NativeEndian, q); err != nil {
		return nil, err
	}
	if err := c.conn.SetDeadline(time.Now().Add(answerWithin)); err != nil {
		return nil, err
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	if _, _, err := c.conn.WriteMsgUnix(out.Bytes(), rights, nil); err != nil {
		return nil, err
	}
	var a answer
	in := make([]byte, binary.Size(a)+1)
	n, err := c.conn.Read(in)
	if err != nil {
		return nil, err
	}
	if n != binary.Size(a) {
		return nil, fmt.Errorf("ktsnd answered %d bytes, not %d: it is of another version", n, binary.Size(a))
	}
	if _, err := binary.Decode(in, binary.NativeEndian, &a); err != nil {
		return nil, err
	}
	if a.Version != version {
		return nil, fmt.Errorf("ktsnd is of version %d, this is %d", a.Version, version)
	}
	if a.Error != 0 {
		reason := string(bytes.TrimRight(a.Reason[:], "\x00"))
		return nil, fmt.Errorf("%w: %s (%w)", ErrRefused, reason, syscall.Errno(-a.Error))
	}
	return &a, nil
}
