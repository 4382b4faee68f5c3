package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"capacityv2.internal/test-e2e/driver/pool"
	"capacityv2.internal/test-e2e/driver/record"
	"capacityv2.internal/test-integration/history"
)

// History returns what the drivers that run were asked for, from their logs, also those
// of the container before. What a driver says of another node's books is that node's. Since is from when on no
// call may be missing; zero: since the pods are there. It is an error if the kubelet has dropped a log with such calls, or
// the beginning of one.
func (c *Cluster) History(ctx context.Context, since time.Time) ([]history.Operation, error) {
	pods, err := c.driverPods(ctx)
	if err != nil {
		return nil, err
	}
	var all []history.Operation
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == status.Name && c.Image == driverImage })
			if i < 0 {
				continue
			}
			if err := logsAreThere(status, since); err != nil {
				return nil, fmt.Errorf("pod %s on node %s: %w", pod.Name, pod.Spec.NodeName, err)
			}
			for previous := min(status.RestartCount, 1); previous >= 0; previous-- {
				log, err := c.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: status.Name, Previous: previous > 0}).DoRaw(ctx)
				if err != nil {
					return nil, fmt.Errorf("log of pod %s: %w", pod.Name, err)
				}
				here, err := operations(string(log), pod.Spec.NodeName)
				if err == nil && len(here) == 0 && previous == 0 {
					err = fmt.Errorf("it does not say that the driver has started; %s", wantWhole)
				}
				if err != nil {
					return nil, fmt.Errorf("log of pod %s on node %s: %w", pod.Name, pod.Spec.NodeName, err)
				}
				all = append(all, here...)
			}
		}
	}
	return all, nil
}

// wantWhole is the rest of an error about a log without its beginning.
const wantWhole = "expected: the driver's pools, its volumes and its start before any call. The kubelet drops the beginning of a log that is too long: " +
	"run make down, then the same again, or fewer tests at once"

// logsAreThere returns an error if the driver was asked for something after a moment, and the log of that is gone: the
// kubelet keeps that of the container that runs and of the one before.
func logsAreThere(status corev1.ContainerStatus, since time.Time) error {
	if status.RestartCount <= 1 {
		return nil
	}
	before := "at an unknown moment"
	if ended := status.LastTerminationState.Terminated; ended != nil {
		// It is cut to whole seconds.
		if !ended.StartedAt.Add(time.Second).After(since) {
			return nil
		}
		before = "at " + ended.StartedAt.UTC().Format(time.RFC3339)
	}
	want := "1 at most"
	if !since.IsZero() {
		want += " since " + since.UTC().Format(time.RFC3339)
	}
	return fmt.Errorf("%d restarts of the driver, the one before the last %s; expected: %s, as earlier logs are gone with the calls in them. "+
		"Look why it ended (kubectl describe pod), then run make down and the same again", status.RestartCount, before, want)
}

// kinds are those of what drivers say before they do it.
var kinds = map[string]history.Kind{"takes": history.Create, "gives back": history.Delete}

// operations returns what a driver's log says. Where a call has done what the books say, it is one operation. It is an
// error if the start of the driver is not before all calls.
func operations(log, node string) ([]history.Operation, error) {
	var all []history.Operation
	start := history.Operation{Kind: history.Start, Result: history.OK, Pools: map[string]int64{}, Volumes: map[string]history.Place{}}
	for text := range strings.SplitSeq(log, "\n") {
		if !strings.HasPrefix(text, "{") {
			continue
		}
		var e record.Event
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		o := history.Operation{Node: e.Node, Volume: e.Volume, Bytes: e.Bytes, Allowed: e.Pools, Call: e.At, Return: e.At, At: e.At, Result: history.OK}
		if begins := slices.Contains([]string{"pool", "has", "started"}, e.Event); !begins && start.Node == "" {
			return nil, fmt.Errorf("it begins with %s; %s", text, wantWhole)
		}
		switch e.Event {
		case "pool":
			start.Pools[e.Pool] = e.Bytes
			continue
		case "has":
			start.Volumes[e.Volume] = history.Place{Pool: e.Pool, Bytes: e.Bytes}
			continue
		case "started":
			start.Node, start.Call, start.Return, start.At = e.Node, e.At, e.At, e.At
			o = start
		case "takes", "gives back": // a driver that is killed now may have done it
			o.Kind, o.Pool, o.Result, o.Return, o.At = kinds[e.Event], e.Pool, history.Unknown, time.Time{}, time.Time{}
		case "taken", "given back":
			if !finish(all, o) {
				return nil, fmt.Errorf("%s: nothing was begun", text)
			}
			continue
		case "refused":
			o.Kind, o.Result = history.Create, history.Refused
		case "create", "delete":
			all = called(all, e, o, node)
			continue
		default:
			return nil, errors.New("an event that is not known: " + text)
		}
		all = append(all, o)
	}
	return all, nil
}

// finish completes the last operation of the volume that was begun on a node.
func finish(all []history.Operation, done history.Operation) bool {
	for i := range slices.Backward(all) {
		if known := &all[i]; known.Node == done.Node && known.Volume == done.Volume && known.Result == history.Unknown {
			known.Result, known.Return, known.At = history.OK, done.At, done.At
			return true
		}
	}
	return false
}

// called adds the end of a call: to what it has done, or, if that is nothing, as an operation that has found
// everything as it was asked for. A call that failed for another reason than room has done what the books say.
func called(all []history.Operation, e record.Event, o history.Operation, node string) []history.Operation {
	o.Node, o.Call, o.At, o.Kind = node, e.Began, time.Time{}, history.Kind(e.Event)
	if o.Kind == history.Create {
		o.Volume = pool.ID(e.Name, node)
	}
	done := false
	for i := range all {
		if known := &all[i]; known.Node == node && known.Kind == o.Kind && known.Volume == o.Volume && !known.At.Before(e.Began) {
			known.Call, known.Return, done = e.Began, o.Return, true
		}
	}
	if !done && e.Code == "OK" {
		all = append(all, o)
	}
	return all
}
