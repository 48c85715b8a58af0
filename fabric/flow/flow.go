// Package flow is the record of one flow, which is a connection of a client that a
// gateway has carried or refused: who called what, what was decided and why, how many
// bytes passed and when. It says as well which flows other policies would decide
// otherwise. Records are lines of JSON; who writes them is the package journal. Start at
// Record.
package flow

import (
	"encoding/json"
	"strconv"
	"time"

	"skerry.dev/skerry/fabric/policy"
	"skerry.dev/skerry/fabric/transport"
)

// Record is what is known of a flow when it is over. The names of its fields in JSON
// stay as they are.
type Record struct {
	Begin     time.Time `json:"begin"`
	Direction Direction `json:"direction"`
	// Peer is the cluster at the other end, as far as one was chosen; Gateway the one of
	// it that was called, as HOST:PORT, or that has called, by its name.
	Peer    string `json:"peer,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	// Cluster is the one that exports the service.
	Cluster string           `json:"cluster,omitempty"`
	Service transport.Target `json:"service"`
	// From are attributes of the client, as they were decided by.
	From policy.Attributes `json:"from,omitempty"`
	// Client is its address, which only the importer's gateway knows.
	Client  string  `json:"client,omitempty"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`
	// Policy is the one here that has decided; none where all were silent, which denies,
	// or where none was asked.
	Policy         string `json:"policy,omitempty"`
	ToServiceBytes int64  `json:"toServiceBytes"`
	ToClientBytes  int64  `json:"toClientBytes"`
	Timings
}

// Timings count from the begin; 0 is for what has not happened.
type Timings struct {
	// OpenNs is when the way was open: to the peer for imports, to the service for
	// exports.
	OpenNs int64 `json:"openNs,omitempty"`
	// FirstByteNs is when the first byte of the service came back.
	FirstByteNs int64 `json:"firstByteNs,omitempty"`
	TotalNs     int64 `json:"totalNs"`
}

// Direction says at which side of a flow a gateway is.
type Direction string

// The directions.
const (
	Import Direction = "import" // a client here calls a service of a peer
	Export Direction = "export" // a peer calls a service here
)

// Verdict is how a flow has ended.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "allowed" // and carried to its end
	Denied  Verdict = "denied"  // by the policies here
	Refused Verdict = "refused" // by the peer, or nothing there accepts
	Broken  Verdict = "broken"  // carried, and broken off
)

// Decided says whether the policies here were asked, and what they said.
func (r *Record) Decided() (allowed, asked bool) {
	return r.Verdict != Denied, r.Verdict == Denied || r.Policy != ""
}

// To are the attributes of a service of a cluster, which policies decide by.
func To(cluster string, t transport.Target) policy.Attributes {
	return policy.Attributes{
		policy.Cluster: cluster, policy.Namespace: t.Namespace, policy.Service: t.Name,
		policy.Port: strconv.Itoa(int(t.Port)), policy.Protocol: t.Protocol,
	}
}

// Append adds the record's line.
func (r *Record) Append(to []byte) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return to, err
	}
	return append(append(to, text...), '\n'), nil
}
