package bench

import (
	"fmt"
	"strconv"
)

// Queue is a line of a table of queues: the same pods and the same driver, with
// different policies.
type Queue struct {
	// Storage, Capacity and Delay say which queue it is.
	Storage, Capacity, Delay string
	// Policies are upstream, Object, InFlight and confirmed, in this order.
	Policies []QueueResult
}

// QueueResult is what a policy does with a queue.
type QueueResult struct {
	// Failed tells the number of wrong decisions, Rate has the pods per second, and Took
	// the time until the queue was empty, or how many pods were left.
	Failed, Rate, Took string
	// RateShare is what it reaches of upstream's rate, and Times how often its time is
	// that of a driver which is never late.
	RateShare, Times string
}

// notRun stands for a result that there is not.
const notRun = "not run"

var queuePolicies = []string{"upstream", "Object", "InFlight", "confirmed"}

// Queues are the lines of a table of queues, for "plenty" or "tight" room.
func (r Report) Queues(room string) []Queue {
	delays := []string{"100ms", "1s", "10s"}
	if room == "tight" {
		delays = append([]string{"0s"}, delays...)
	}
	var queues []Queue
	for _, storage := range []string{"node", "pools", "zone"} {
		for _, delay := range delays {
			queues = append(queues, r.queue(storage, "changing", room, delay))
		}
		constant := r.queue(storage, "constant", room, "1s")
		constant.Delay = "–"
		queues = append(queues, constant)
	}
	return queues
}

func (r Report) queue(storage, capacity, room, delay string) Queue {
	name := func(capacity, delay, policy string) string {
		return fmt.Sprintf("Drain/storage=%s/capacity=%s/room=%s/delay=%s/policy=%s", storage, capacity, room, delay, policy)
	}
	q := Queue{Storage: storage, Capacity: capacity, Delay: delay}
	for _, policy := range queuePolicies {
		own := name(capacity, delay, policy)
		result := QueueResult{
			Failed: r.plain(own, "failed-provisions"), Rate: r.plain(own, "pods/s"), Took: r.plain(own, "drain-s") + " s",
			RateShare: r.share(own, name(capacity, delay, "upstream"), "pods/s"),
			Times:     r.times(own, name("changing", "0s", policy)),
		}
		switch left := r.plain(own, "pods-left"); left {
		case "0":
			result.Failed += " failed"
		case notRun:
			result.Took, result.Times = "–", "–"
		default:
			result.Failed += " failed"
			result.Took, result.Times = left+" left", "–"
		}
		q.Policies = append(q.Policies, result)
	}
	return q
}

// times returns how often the time of a queue is that of another one.
func (r Report) times(a, b string) string {
	took, ok := r.Samples.Median(a, "drain-s")
	of, ok2 := r.Samples.Median(b, "drain-s")
	if !ok || !ok2 {
		return "–"
	}
	return fmt.Sprintf("%.1f", took/of)
}

// Churn is a line of the table of pods that come and go.
type Churn struct {
	Policy string
	// Kills says whether the scheduler was killed.
	Kills string
	// Failed is the number of wrong decisions, Waited the longest time in seconds that a
	// pod waited beside free room, and Left the number of pods without a node at the end.
	Failed, Waited, Left string
}

// Churns are the lines of the table of pods that come and go.
func (r Report) Churns() []Churn {
	var lines []Churn
	for _, kills := range []bool{false, true} {
		for _, policy := range queuePolicies {
			name := "Churn/kills=" + strconv.FormatBool(kills) + "/policy=" + policy
			line := Churn{Policy: policy, Kills: "no", Failed: r.plain(name, "failed-provisions"), Waited: r.plain(name, "wait-s"), Left: r.plain(name, "pods-left")}
			if kills {
				line.Kills = "twice"
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// plain shows a median without its spread.
func (r Report) plain(name, unit string) string {
	value, ok := r.Samples.Median(name, unit)
	if !ok {
		return notRun
	}
	return fmt.Sprintf("%.3g", value)
}
