package sim

import "time"

// kind is what happens.
type kind int

const (
	asks     kind = iota // a user asks
	comes                // a request comes by itself
	arrives              // one is at its server
	served               // the server is done with it
	answered             // the answer is there
	usage                // CPU is told
	inFlight             // what is in flight is told
)

// event is something that happens at a time.
type event struct {
	at      time.Duration
	seq     uint64 // what was added first is first, of one time
	kind    kind
	user    int // of asks; of comes, the node
	request *request
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// queue holds what is to happen, as a binary heap. (container/heap would make garbage of
// every event, and there are millions.)
type queue struct {
	list []event
	seq  uint64
}

func (q *queue) add(e event) {
	q.seq++
	e.seq = q.seq
	q.list = append(q.list, e)
	i := len(q.list) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !q.list[i].before(&q.list[parent]) {
			return
		}
		q.list[i], q.list[parent] = q.list[parent], q.list[i]
		i = parent
	}
}

// next takes the first; there is always one, since reports never end.
func (q *queue) next() event {
	first, last := q.list[0], len(q.list)-1
	q.list[0] = q.list[last]
	q.list = q.list[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.list[child].before(&q.list[least]) {
				least = child
			}
		}
		if least == i {
			return first
		}
		q.list[i], q.list[least] = q.list[least], q.list[i]
		i = least
	}
}
