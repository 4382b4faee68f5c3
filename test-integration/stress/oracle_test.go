package stress

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// oracleName is the name of the plugin that takes the place of VolumeBinding.
const oracleName = "WatchedVolumeBinding"

// selectedNode is where the scheduler tells the provisioner its decision.
const selectedNode = "volume.kubernetes.io/selected-node"

// oracle knows which decisions have used which objects.
type oracle struct {
	policy  config.CapacityReservationPolicy
	timeout time.Duration

	mutex sync.Mutex
	// uses are the decisions for versions of objects.
	uses map[version][]*use
	// idle is the last time at which something happened to an object.
	idle       map[string]time.Time
	decisions  int
	violations []error // at most some
}

// version is a version of an object.
type version struct {
	uid             types.UID
	resourceVersion string
}

// use is a decision for a pod.
type use struct {
	pod types.UID
	// binding is when binding began. It is zero before.
	binding time.Time
	ended   bool
}

func newOracle(policy config.CapacityReservationPolicy, timeout time.Duration) *oracle {
	return &oracle{policy: policy, timeout: timeout, uses: map[version][]*use{}, idle: map[string]time.Time{}}
}

// restarted forgets all uses, as the scheduler does.
func (o *oracle) restarted() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	clear(o.uses)
}

// reserved checks a decision.
func (o *oracle) reserved(pod *corev1.Pod, name string, v version) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.decisions++
	for _, other := range o.uses[v] {
		// The time between the start of binding and its end makes this too strict
		// for the plugin to be wrong, and never too lax for it to be right.
		expired := !other.binding.IsZero() && time.Since(other.binding) >= o.timeout
		if len(o.violations) < 10 && o.policy == config.ObjectCapacityReservation && other.pod != pod.UID && !other.ended && !expired {
			o.violations = append(o.violations, fmt.Errorf("version %s of object %s is used for pod %s, but was used for pod %s before", v.resourceVersion, name, pod.Name, other.pod))
		}
	}
	o.uses[v] = append(o.uses[v], &use{pod: pod.UID})
	o.idle[name] = time.Now()
}

// each calls f for the uses of a pod.
func (o *oracle) each(pod types.UID, f func(*use)) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for _, uses := range o.uses {
		for _, use := range uses {
			if use.pod == pod {
				f(use)
			}
		}
	}
}

// happened notes that something happened to an object.
func (o *oracle) happened(name string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.idle[name] = time.Now()
}

// idleSince returns the last time at which something happened to an object.
func (o *oracle) idleSince(name string) time.Time {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.idle[name]
}

// result returns the number of decisions, and what was wrong with them.
func (o *oracle) result() (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.decisions, errors.Join(o.violations...)
}

// volumeBinding is what VolumeBinding implements, whatever features are enabled.
type volumeBinding interface {
	fwk.PreFilterPlugin
	fwk.FilterPlugin
	fwk.PreScorePlugin
	fwk.ScorePlugin
	fwk.ReservePlugin
	fwk.PreBindPlugin
	fwk.EnqueueExtensions
	fwk.SignPlugin
}

// plugin is VolumeBinding with the oracle beside it.
type plugin struct {
	volumeBinding
	oracle *oracle
	handle fwk.Handle
	// fails decides about binding after the volumes were bound.
	fails func(*corev1.Pod) bool
}

// registry returns the plugin for the scheduler.
func (o *oracle) registry(args *config.VolumeBindingArgs, fails func(*corev1.Pod) bool) frameworkruntime.Registry {
	return frameworkruntime.Registry{oracleName: func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		fts := feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
		fts.EnableStorageCapacityScoring = false // has arguments of its own
		if !fts.EnableCSIStorageCapacityV2 {
			args.CapacityReservation = nil
		}
		// A scheduler that gets restarted has new reservations.
		inner, err := volumebinding.New(ctx, args, handle, fts)
		if err != nil {
			return nil, err
		}
		return &plugin{volumeBinding: inner.(volumeBinding), oracle: o, handle: handle, fails: fails}, nil
	}}
}

// Name implements fwk.Plugin.
func (p *plugin) Name() string { return oracleName }

// PostFilter implements fwk.PostFilterPlugin.
func (p *plugin) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if inner, ok := p.volumeBinding.(fwk.PostFilterPlugin); ok {
		return inner.PostFilter(ctx, state, pod, statuses)
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// Reserve implements fwk.ReservePlugin. A decision counts if the object is the same
// before and after: then it was that version which was reserved.
func (p *plugin) Reserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	class, isNew := p.decision(pod)
	name := objectName(class, nodeName)
	before := p.version(name)
	status := p.volumeBinding.Reserve(ctx, state, pod, nodeName)
	if after := p.version(name); status.IsSuccess() && isNew && before == after {
		p.oracle.reserved(pod, name, after)
	}
	return status
}

// Unreserve implements fwk.ReservePlugin.
func (p *plugin) Unreserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) {
	p.oracle.each(pod.UID, func(u *use) { u.ended = true })
	p.volumeBinding.Unreserve(ctx, state, pod, nodeName)
	class, _ := p.decision(pod)
	p.oracle.happened(objectName(class, nodeName))
}

// PreBind implements fwk.PreBindPlugin.
func (p *plugin) PreBind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	start := time.Now()
	p.oracle.each(pod.UID, func(u *use) { u.binding = start })
	status := p.volumeBinding.PreBind(ctx, state, pod, nodeName)
	if status.IsSuccess() && p.fails(pod) {
		return fwk.NewStatus(fwk.Error, "binding fails, as the seed says")
	}
	return status
}

// version returns the version of an object that the scheduler has.
func (p *plugin) version(name string) version {
	capacity, err := p.handle.SharedInformerFactory().Storage().V1().CSIStorageCapacities().Lister().CSIStorageCapacities(corev1.NamespaceDefault).Get(name)
	if err != nil {
		return version{}
	}
	return version{uid: capacity.UID, resourceVersion: capacity.ResourceVersion}
}

// decision returns the storage class of a pod, and whether a decision needs room:
// not if it is an older one that goes on.
func (p *plugin) decision(pod *corev1.Pod) (class string, isNew bool) {
	for _, volume := range pod.Spec.Volumes {
		claim, err := p.handle.SharedInformerFactory().Core().V1().PersistentVolumeClaims().Lister().PersistentVolumeClaims(pod.Namespace).Get(volume.PersistentVolumeClaim.ClaimName)
		if err != nil {
			return "", false
		}
		class = *claim.Spec.StorageClassName
		if claim.Spec.VolumeName != "" || claim.Annotations[selectedNode] != "" {
			return class, false
		}
	}
	return class, true
}
