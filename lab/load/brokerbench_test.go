package load

import (
	"bytes"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"skerry.dev/skerry/internal/clock"
	"skerry.dev/skerry/internal/quantity"
	"skerry.dev/skerry/lab/workload/broker"
)

// BenchmarkMessage compares the load with the clients of the field, Eclipse Paho and
// RabbitMQ's own, by the same mirror in place of a broker: one message of each in
// turn, back to back or a millisecond apart, as over a link, where cores have gone
// to sleep. It reports ns per message of each and their ratio.
//
//	go test -run '^$' -bench Message -count 10 ./lab/load
func BenchmarkMessage(b *testing.B) {
	for _, protocol := range []string{broker.MQTT, broker.AMQP} {
		for _, c := range []struct {
			name  string
			pause time.Duration
		}{{"busy", 0}, {"rested", time.Millisecond}} {
			b.Run(protocol+"/"+c.name, func(b *testing.B) { benchmarkMessage(b, protocol, c.pause) })
		}
	}
}

func benchmarkMessage(b *testing.B, protocol string, pause time.Duration) {
	const size = quantity.Size(1000)
	target := startRaw(b, mirrorOf(protocol, nil))
	p, err := newPlan(b.Context(), brokerSpec(protocol, target, size, 1))
	if err != nil {
		b.Fatal(err)
	}
	l, release, err := newLoop(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer release()
	theirs := theirAMQP
	if protocol == broker.MQTT {
		theirs = theirMQTT
	}
	message := theirs(b, target)
	var oursNs, theirsNs int64
	l.start(func(r *routine) {
		ours := newThread(r, p, nil)
		defer ours.link.close()
		if row, _ := ours.request(0); row.Error != "" { // it dials
			b.Fatal(row.Error)
		}
		for b.Loop() {
			r.sleep(pause)
			row, _ := ours.request(0)
			if row.Error != "" {
				b.Fatal(row.Error)
			}
			oursNs += row.ResponseNs()
			r.sleep(pause)
			theirsNs += message(p.want)
		}
	})
	if err := l.run(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(oursNs)/float64(b.N), "load-ns")
	b.ReportMetric(float64(theirsNs)/float64(b.N), "client-ns")
	b.ReportMetric(float64(oursNs)/float64(theirsNs), "ratio")
}

// theirMQTT passes a message on by Paho, and tells how long it took until its handler
// had it.
func theirMQTT(b *testing.B, target string) func([]byte) int64 {
	const topic = "theirs"
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker("tcp://" + target).SetKeepAlive(0))
	done := func(token mqtt.Token) {
		if token.Wait(); token.Error() != nil {
			b.Fatal(token.Error())
		}
	}
	done(client.Connect())
	b.Cleanup(func() { client.Disconnect(0) })
	type arrival struct {
		at   int64
		body []byte
	}
	arrivals := make(chan arrival, 1)
	done(client.Subscribe(topic, mqttQoS, func(_ mqtt.Client, m mqtt.Message) { arrivals <- arrival{clock.Mono(), m.Payload()} }))
	return func(body []byte) int64 {
		at := clock.Mono()
		token := client.Publish(topic, mqttQoS, false, body)
		got := <-arrivals
		done(token)
		if !bytes.Equal(got.body, body) {
			b.Fatal("another body came back")
		}
		return got.at - at
	}
}

// theirAMQP passes a message on by RabbitMQ's client.
func theirAMQP(b *testing.B, target string) func([]byte) int64 {
	client, deliveries := amqpClient(b, target)
	return func(body []byte) int64 {
		at := clock.Mono()
		got := passOn(b, client, deliveries, body)
		took := clock.Mono() - at
		if !bytes.Equal(got, body) {
			b.Fatal("another body came back")
		}
		return took
	}
}
