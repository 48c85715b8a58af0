package reports

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skerry.dev/skerry/proxy/snapshot"
)

const patience = 20 * time.Second

var (
	secret = bytes.Repeat([]byte("k"), KeyLeast)
	key    = newSigner(secret)
	web    = snapshot.Key{Namespace: "default", Name: "web"}
)

func message(node string, epoch int64, number uint64, services ...Service) *Message {
	return &Message{Node: node, Epoch: epoch, Number: number, Sent: time.Second, Services: services}
}

func TestMessage(t *testing.T) {
	m := message("n1", 5, 7, Service{Key: web, Pods: true, CPU: 0.5, RAM: 0.25, Cores: 2, Worked: time.Second, Flights: []Flight{{"n2", 3.5, 100}}})
	m.Echo = Echo{1, 2, 3}
	b, err := encode(m, key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(b, []*signer{newSigner(bytes.Repeat([]byte("o"), KeyLeast)), key})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(m) {
		t.Errorf("%v, %v", got, err)
	}
	// A bit that is another anywhere is not believed.
	for i := range b {
		forged := bytes.Clone(b)
		forged[i] ^= 1
		if _, err := decode(forged, []*signer{key}); !errors.Is(err, ErrForged) {
			t.Fatalf("with byte %d changed: %v", i, err)
		}
	}
	if _, err := decode(b, nil); !errors.Is(err, ErrForged) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := decode(b[:tagSize], []*signer{key}); !errors.Is(err, ErrMalformed) {
		t.Errorf("of 16 bytes: %v", err)
	}
}

// Who has the key may still have gone wrong.
func TestBounds(t *testing.T) {
	for what, m := range map[string]*Message{
		"no node":       message("", 1, 1),
		"a long name":   message(strings.Repeat("n", nameMost+1), 1, 1),
		"no number":     message("n", 1, 0),
		"NaN":           message("n", 1, 1, Service{Key: web, CPU: math.NaN()}),
		"less than 0":   message("n", 1, 1, Service{Key: web, Cores: -1}),
		"infinite":      message("n", 1, 1, Service{Key: web, Flights: []Flight{{"m", math.Inf(1), 0}}}),
		"back in time":  message("n", 1, 1, Service{Key: web, Worked: -1}),
		"many services": message("n", 1, 1, make([]Service, servicesMost+1)...),
	} {
		b, err := encode(m, key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(b, []*signer{key}); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// answers has a message answer what the proxy of epoch 1 said a millisecond before.
func answers(now time.Duration, m *Message) *Message {
	m.Echo = Echo{Epoch: 1, Sent: now - 3*time.Millisecond, Held: 2 * time.Millisecond}
	return m
}

// A report that came before, or is of an earlier life of its sender, is no news, whoever
// sends it again.
func TestReplay(t *testing.T) {
	b := NewBook("n0", 1)
	for _, c := range []struct {
		epoch  int64
		number uint64
		now    time.Duration
		news   bool
	}{
		{5, 1, 0, true}, {5, 2, 0, true}, {5, 2, 0, false}, {5, 1, 0, false},
		{6, 1, 0, true},  // it has begun anew
		{5, 3, 0, false}, // an earlier life
		{6, 9, 0, true}, {6, 8, 0, false},
		{4, 1, 9 * time.Second, false},
		{4, 1, 11 * time.Second, true}, // nothing came for 10 s: a clock that was set back
	} {
		if got := b.Hear(answers(c.now, message("n1", c.epoch, c.number)), c.now); got != c.news {
			t.Errorf("epoch %d number %d at %v: news %v", c.epoch, c.number, c.now, got)
		}
	}
	if b.Hear(answers(0, message("n0", 9, 9)), 0) {
		t.Error("one who says to be this node is believed")
	}
}

// What was recorded of a node says nothing later, though nothing else is known of it: not to
// this proxy, which it was for, nor to another, nor to the next one of this node.
func TestRecorded(t *testing.T) {
	recorded := answers(0, message("n1", 5, 7, Service{Key: web, Pods: true, CPU: 1, Flights: []Flight{{"n1", 100, 1}}}))
	for what, b := range map[string]*Book{"to whom it was for": NewBook("n0", 1), "to the next one there": NewBook("n0", 2)} {
		for _, now := range []time.Duration{answerMost + time.Second, time.Minute, time.Hour} {
			if b.Hear(recorded, now) {
				t.Errorf("%s it is news after %v", what, now)
			}
			if n := b.About(web, "n1", now); n.Usage.Known || n.RTT.Known {
				t.Errorf("%s it says %+v after %v", what, n, now)
			}
		}
	}
}

// What a node has said to another, and somebody sends here, changes nothing that is known of
// it: not what is taken next, nor how long its last has lain here.
func TestMeantForAnother(t *testing.T) {
	b := NewBook("n0", 1)
	if !b.Hear(answers(0, message("n1", 5, 1)), 0) {
		t.Fatal("a report is not believed")
	}
	before := b.Echo("n1", time.Second)
	other := message("n1", 5, 9)
	other.Sent, other.Echo = 5*time.Second, Echo{Epoch: 2, Sent: 1, Held: 1}
	if b.Hear(other, 500*time.Millisecond) {
		t.Error("a report for another is believed")
	}
	if after := b.Echo("n1", time.Second); after != before {
		t.Errorf("it is answered: %+v, not %+v", after, before)
	}
	if !b.Hear(answers(time.Second, message("n1", 5, 2)), time.Second) {
		t.Error("the next report is not believed")
	}
}

// Who has not heard this proxy yet is told once, so that it can be believed; so is who began
// anew, that it can believe.
func TestOwed(t *testing.T) {
	b := NewBook("n0", 1)
	for i, c := range []struct {
		m    *Message
		news bool
		owed string
	}{
		{message("n1", 5, 1), false, "[n1]"},
		{message("n1", 5, 2), false, "[n1]"},
		{answers(0, message("n1", 5, 3)), true, "[]"},
		{answers(0, message("n1", 6, 1)), true, "[n1]"},
		{answers(0, message("n1", 6, 2)), true, "[]"},
	} {
		if news, owed := b.Hear(c.m, 0), fmt.Sprint(b.Owed()); news != c.news || owed != c.owed {
			t.Errorf("message %d: news %v, owed to %s", i, news, owed)
		}
	}
}

// What nobody has said for a minute takes no memory.
func TestForgets(t *testing.T) {
	b := NewBook("n0", 1)
	b.Hear(answers(0, message("n1", 5, 1, Service{Key: web, Pods: true, Flights: []Flight{{"n1", 1, 1}}})), 0)
	b.About(web, "n1", 0)
	b.Say([]Service{{Key: web, Flights: []Flight{{"n1", 1, 1}}}}, 0)
	b.Say([]Service{{Key: web}}, forgetAfter+time.Second)
	if own := b.peers["n0"]; len(b.peers) != 1 || len(b.rates) != 0 || len(own.services[web].flights) != 0 {
		t.Errorf("%d peers, %d rates, %+v", len(b.peers), len(b.rates), own.services[web])
	}
}

// What is known of a node is what it says of its pods, and what all say to have sent
// there; a second later it is not known any more.
func TestAbout(t *testing.T) {
	b := NewBook("n0", 1)
	say := func(now time.Duration, worked time.Duration, done uint64) {
		b.Say([]Service{{Key: web, Flights: []Flight{{"n1", 2, done}}}}, now)
		number := uint64(now/Every) + 1
		b.Hear(answers(now, message("n1", 1, number, Service{Key: web, Pods: true, CPU: 0.75, RAM: 0.5, Cores: 2, Worked: worked, Flights: []Flight{{"n1", 1, done}}})), now)
		// It is said in parts.
		b.Hear(answers(now, message("n2", 1, 2*number, Service{Key: web, Flights: []Flight{{"n1", 4, 0}}})), now)
		b.Hear(answers(now, message("n2", 1, 2*number+1, Service{Key: web, Flights: []Flight{{"n0", 9, 0}}})), now)
	}
	say(0, 0, 0)
	b.About(web, "n1", 0)
	say(Every, 60*time.Millisecond, 10)
	n := b.About(web, "n1", Every)
	if n.Local || n.Usage.Value.CPU != 0.75 || n.Usage.Value.RAM != 0.5 || n.Queue.Value.InFlight != 7 || n.Queue.Value.Cores != 2 {
		t.Errorf("%+v", n)
	}
	// 20 were answered for 60 ms of work.
	if q := n.Queue.Value; q.Service != 3*time.Millisecond || q.Served != 20 {
		t.Errorf("service time %v by %v", q.Service, q.Served)
	}
	if n := b.About(web, "n1", Every+2*time.Second); n.Usage.Known || n.Queue.Known {
		t.Errorf("2 s later %+v", n)
	}
	if n := b.About(web, "n2", Every); n.Usage.Known || n.Queue.Known || n.RTT.Value != time.Millisecond {
		t.Errorf("of a node without pods %+v", n)
	}
	b.Forget(web)
	if n := b.About(web, "n1", Every); n.Queue.Known || len(b.rates) != 0 {
		t.Errorf("of a Service that is gone %+v", n)
	}
}

// Of pods that nobody calls a node speaks once a second: that is known until the next word, and
// when one is lost. Of others it speaks with each report, and is missed after a second.
func TestSeldomSpokenOf(t *testing.T) {
	const second = time.Second
	for every, known := range map[time.Duration]map[time.Duration]bool{
		second: {second: true, 2*second + Every: true, 2*second + 600*time.Millisecond: false},
		Every:  {Every: true, second: true, second + Every: false},
	} {
		b := NewBook("n0", 1)
		last := 3 * second
		for now := time.Duration(0); now <= last; now += every {
			b.Hear(answers(now, message("n1", 1, uint64(now)+1, Service{Key: web, Pods: true, CPU: 0.1})), now)
		}
		for after, want := range known {
			if n := b.About(web, "n1", last+after); n.Usage.Known != want || n.Queue.Known != want {
				t.Errorf("spoken of each %v, it is known %v after: %v", every, after, n.Usage.Known)
			}
		}
	}
}

// A pod that begins anew counts from 0, and so does a proxy; who is heard of for the first
// time, or after a silence, has not answered all of it just now.
func TestCountsBeginAnew(t *testing.T) {
	b := NewBook("n0", 1)
	now := time.Duration(0)
	b.About(web, "n1", now)
	say := func(epoch int64, worked time.Duration, done uint64) {
		now += Every
		b.Hear(answers(now, message("n1", epoch, uint64(now), Service{Key: web, Pods: true, Worked: worked, Flights: []Flight{{"n1", 1, done}}})), now)
		b.About(web, "n1", now)
	}
	say(1, time.Second, 100)           // for the first time
	say(1, 1100*time.Millisecond, 150) // 50 for 100 ms
	say(1, time.Millisecond, 151)      // a pod has begun anew: 1 for nothing
	say(1, 3*time.Millisecond, 152)    // 1 for 2 ms
	say(2, time.Hour, 1000)            // a proxy has
	say(2, time.Hour+time.Second, 2000)
	r, keep := b.rates[rateKey{web, "n1"}], func(ticks int) float64 {
		return math.Exp(-float64(time.Duration(ticks)*Every) / float64(serviceDecay))
	}
	check := func(served, spent float64) {
		t.Helper()
		if math.Abs(r.served-served) > 1e-6 || math.Abs(r.spent-spent*1e6) > 1 {
			t.Errorf("%v for %v, not %v for %v", r.served, r.spent, served, spent*1e6)
		}
	}
	check(50*keep(4)+keep(3)+keep(2)+1000, 100*keep(4)+2*keep(2)+1000)
	// Whom it has sent nothing to is not said: it begins at 0, once all has been said.
	for _, c := range []struct {
		from time.Duration
		want float64
	}{{0, 0}, {2 * allWithin, 7}} {
		b = NewBook("n0", 1)
		b.Hear(answers(0, message("n1", 1, 1, Service{Key: web})), 0)
		b.Hear(answers(c.from, message("n2", 1, 1, Service{Key: web, Pods: true})), c.from)
		b.About(web, "n2", c.from)
		b.Hear(answers(c.from, message("n1", 1, 2, Service{Key: web, Flights: []Flight{{"n2", 0, 7}}})), c.from)
		b.About(web, "n2", c.from)
		r = b.rates[rateKey{web, "n2"}]
		check(c.want, 0)
	}
}

// Pods work as they start, and a little for ever: requests take no longer for it.
func TestIdleWorkIsForNoRequest(t *testing.T) {
	r := &rate{}
	now := time.Duration(0)
	for _, c := range []struct {
		worked time.Duration
		done   uint64
		asked  bool
		after  time.Duration
	}{
		{200 * time.Millisecond, 0, false, Every}, // they start
		{time.Millisecond, 1, false, Every},       // a request between two reports
		{time.Millisecond, 0, true, Every},        // one over two of them
		{time.Millisecond, 1, false, Every},
		{97 * time.Millisecond, 0, true, 2 * age}, // and one after a silence
		{time.Millisecond, 1, false, Every},
	} {
		now += c.after
		r.worked, r.done = c.worked, c.done
		r.look(c.asked, now)
	}
	if took := time.Duration(r.spent / r.served); took < time.Millisecond || took > 2*time.Millisecond {
		t.Errorf("a request takes %v, of 1 to 2 ms", took)
	}
}

// pair are two that report to each other, n0 and n1.
func pair(t *testing.T) (one, other *Link) {
	t.Helper()
	begun := time.Now()
	var links []*Link
	for i := range 2 {
		l, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), NewBook(fmt.Sprint("n", i), int64(i+1)), func() time.Duration { return time.Since(begun) })
		if err != nil {
			t.Fatal(err)
		}
		l.SetKeys([][]byte{secret})
		t.Cleanup(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
		links = append(links, l)
	}
	links[0].SetPeers(map[string]netip.AddrPort{"n1": links[1].Address()})
	links[1].SetPeers(map[string]netip.AddrPort{"n0": links[0].Address()})
	return links[0], links[1]
}

// Two that report to each other know the round trip, and what the other has said.
func TestLinks(t *testing.T) {
	one, other := pair(t)
	// More Services than a datagram holds, one of which has more flights.
	var wide []Flight
	for i := range 1000 {
		wide = append(wide, Flight{fmt.Sprintf("ip-10-1-2-%d.eu-central-1.compute.internal", i), 0.3, 1 << 40})
	}
	many := []Service{{Key: web, Pods: true, Flights: wide}}
	for i := range 200 {
		many = append(many, Service{Key: snapshot.Key{Namespace: "default", Name: fmt.Sprint("web", i)}, Pods: true, Cores: 1})
	}
	knows := func() (ok bool) {
		one.With(func(b *Book) {
			ok = b.RTT("n1").Known && b.About(web, "n1", one.now()).Usage.Known && b.About(many[200].Key, "n1", one.now()).Usage.Known &&
				len(b.peers["n1"].services[web].flights) == len(wide)
		})
		return ok
	}
	for begun := time.Now(); !knows(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatal("n0 does not know n1")
		}
		one.Report(nil)
		other.Report(many)
		one.Hear()
		other.Hear()
	}
	one.With(func(b *Book) {
		if rtt := b.RTT("n1").Value; rtt <= 0 || rtt > time.Second {
			t.Errorf("the round trip is %v", rtt)
		}
	})
	// Forged and malformed ones are counted, and change nothing.
	if err := other.conn.SendTo([]byte("nonsense that is long enough to be one"), one.Address()); err != nil {
		t.Fatal(err)
	}
	bad := append(key.tag([]byte{0xff}), 0xff)
	if err := other.conn.SendTo(bad, one.Address()); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); one.Counts().Forged != 1 || one.Counts().Malformed != 1; time.Sleep(time.Millisecond) {
		one.Hear()
		if time.Since(begun) > patience {
			t.Fatalf("counts are %+v", one.Counts())
		}
	}
}

// For how long a report lay until it was taken is not of its round trip, and a clock that was set
// meanwhile makes it no earlier than what was taken before.
func TestArrived(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ last, now, age, want time.Duration }{
		{100 * ms, 200 * ms, 30 * ms, 170 * ms},
		{100 * ms, 200 * ms, 0, 200 * ms},
		{100 * ms, 200 * ms, time.Hour, 100 * ms},
		{100 * ms, 200 * ms, -time.Hour, 200 * ms},
	} {
		if got := arrived(c.last, c.now, c.age); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	one, other := pair(t)
	const lay = 50 * ms
	rtt := func() time.Duration { return one.book.RTT("n1").Value }
	for begun := time.Now(); rtt() == 0 || rtt() > lay/2; { // the first may not be stamped
		if time.Since(begun) > patience {
			t.Fatalf("the round trip is %v, with reports that lay for %v", rtt(), lay)
		}
		one.Report(nil)
		time.Sleep(lay)
		other.Hear()
		other.Report(nil)
		time.Sleep(lay)
		one.Hear()
	}
}

// However many nodes there are, a report goes to a hundred, and each node hears the next of as
// many in a row as Rounds says.
func TestFanOut(t *testing.T) {
	l := &Link{}
	for _, peers := range []int{0, 1, 100, 101, 250, 1000} {
		all := map[string]netip.AddrPort{}
		for i := range peers {
			all[fmt.Sprint(i)] = netip.AddrPort{}
		}
		l.SetPeers(all)
		for turn := range 3 {
			heard := map[string]bool{}
			for range l.Rounds() {
				some := l.chosen()
				if len(some) != min(fanOut, peers) {
					t.Errorf("of %d it goes to %d", peers, len(some))
				}
				for name := range some {
					heard[name] = true
				}
			}
			if len(heard) != peers {
				t.Errorf("turn %d: %d of %d have heard it", turn, len(heard), peers)
			}
		}
	}
}

// Of a thousand nodes each is heard once a second, and counts until it may have been heard twice.
func TestAgeOfMany(t *testing.T) {
	b := NewBook("n0", 1)
	for i := range 1000 {
		b.Hear(answers(0, message(fmt.Sprint("n", i+1), 5, 1, Service{Key: web, Pods: true, Flights: []Flight{{"n1", 1, 0}}})), 0)
	}
	for after, want := range map[time.Duration]float64{time.Second: 1000, 2 * time.Second: 1000, 3 * time.Second: 0} {
		if n := b.About(web, "n1", after); n.Usage.Known != (want > 0) || n.Queue.Value.InFlight != want {
			t.Errorf("after %v %+v", after, n)
		}
	}
}

func TestReadKeys(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadKeys(dir); !errors.Is(err, ErrNoKey) {
		t.Errorf("of an empty folder: %v", err)
	}
	write("b", strings.Repeat("b", 32))
	write("a", strings.Repeat("a", 40))
	write("..data", "a mount's own")
	if keys, err := ReadKeys(dir); err != nil || len(keys) != 2 || keys[0][0] != 'a' {
		t.Errorf("%q, %v", keys, err)
	}
	write("c", "short")
	if _, err := ReadKeys(dir); !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), "5 bytes") || strings.Contains(err.Error(), "short") {
		t.Errorf("of a short key: %v", err)
	}
}

// Whatever comes, nothing breaks, and what is read is within its bounds.
func FuzzDecode(f *testing.F) {
	for _, m := range []*Message{
		message("n1", 5, 7, Service{Key: web, Pods: true, CPU: 0.5, Cores: 2, Flights: []Flight{{"n2", 3.5, 100}}}),
		message("n", 1, 1),
	} {
		b, err := encode(m, key)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[tagSize:])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := decode(append(key.tag(body), body...), []*signer{key})
		if err != nil {
			return
		}
		if err := m.check(); err != nil {
			t.Errorf("read what is %v", err)
		}
		b := NewBook("me", 1)
		b.Hear(answers(0, m), 0)
		for _, s := range m.Services {
			n := b.About(s.Key, m.Node, 0)
			if q := n.Queue.Value.InFlight; q < 0 || math.IsNaN(q) {
				t.Errorf("in flight %v", q)
			}
		}
	})
}
