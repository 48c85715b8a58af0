package reports

import "testing"

// BenchmarkMessage is a report of one Service, from its sender to the book of who hears it.
func BenchmarkMessage(b *testing.B) {
	m := answers(0, message("c1-worker1", 5, 0, Service{Key: web, Pods: true, CPU: 0.5, Cores: 0.2, Flights: []Flight{{"c1-worker1", 3.5, 100}, {"c1-worker2", 0.1, 3}}}))
	book := NewBook("c1-worker2", 1)
	for b.Loop() {
		m.Number++
		datagram, err := encode(m, key)
		if err != nil {
			b.Fatal(err)
		}
		heard, err := decode(datagram, []*signer{key})
		if err != nil {
			b.Fatal(err)
		}
		if !book.Hear(heard, 0) {
			b.Fatal("no news")
		}
	}
}
