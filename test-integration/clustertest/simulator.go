// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// templateLabel is what cluster-autoscaler puts on nodes that do not exist.
const templateLabel = "cluster-autoscaler.kubernetes.io/template-node"

// TemplateNodes are the labels of nodes that a Simulator has.
var TemplateNodes = map[string]string{templateLabel: "true"}

// Simulator asks the scheduler's plugin for volumes about nodes that do not exist, as cluster-autoscaler does: in a framework
// with informers and a lister that has nodes only while plugins run, and without client, recorder or manager of capacity.
type Simulator struct {
	c         *Cluster
	framework framework.Framework
	lister    *lister
	nodes     []*corev1.Node
	placed    []*corev1.Pod
	states    map[types.UID]fwk.CycleState
}

type lister struct{ fwk.SharedLister }

// NewSimulator returns one with template nodes of these names. It sees what is there now, and what comes.
func (c *Cluster) NewSimulator(nodes ...string) *Simulator {
	c.Helper()
	s := &Simulator{c: c, lister: &lister{}, states: map[types.UID]fwk.CycleState{}}
	for _, name := range nodes {
		s.nodes = append(s.nodes, st.MakeNode().Name(name).Label(NodeLabel, name).Label(templateLabel, "true").Obj())
	}
	profile := c.schedulerConfig().Profiles[0]
	profile.Plugins = &config.Plugins{MultiPoint: config.PluginSet{
		Enabled: []config.Plugin{{Name: names.PrioritySort}, {Name: names.DefaultBinder}, {Name: names.VolumeBinding}},
	}}
	factory := scheduler.NewInformerFactory(c.Client(), 0, nil)
	var err error
	s.framework, err = frameworkruntime.NewFramework(c, plugins.NewInTreeRegistry(), &profile,
		frameworkruntime.WithInformerFactory(factory), frameworkruntime.WithSnapshotSharedLister(s.lister))
	c.ExpectNoError(err, "create the framework of the simulator")
	factory.StartWithContext(c)
	factory.WaitForCacheSyncWithContext(c)
	c.running.Go(func() {
		<-c.Done()
		factory.Shutdown()
	})
	return s
}

// Fits returns the code and the reasons why a pod cannot run on a node, beside those that were placed before. There are none
// if it can.
func (s *Simulator) Fits(pod, node string) (reasons []string) {
	s.c.Helper()
	p, state := s.get(pod), framework.NewCycleState()
	s.states[p.UID] = state
	s.run(func(snapshot fwk.SharedLister) {
		nodeInfo, err := snapshot.NodeInfos().Get(node)
		s.c.ExpectNoError(err, "node of the simulator")
		_, status, _ := s.framework.RunPreFilterPlugins(s.c, state, p)
		if status.IsSuccess() {
			status = s.framework.RunFilterPlugins(s.c, state, p, nodeInfo)
		}
		if !status.IsSuccess() {
			reasons = append([]string{status.Code().String()}, status.Reasons()...)
		}
	})
	return reasons
}

// Place puts a pod onto a node, with Fits before it. Nobody but the simulator knows of it.
func (s *Simulator) Place(pod, node string) {
	s.c.Helper()
	s.ExpectFits(pod, node)
	p := s.get(pod)
	p.Spec.NodeName = node
	s.placed = append(s.placed, p)
}

// Reserve is Place that runs Reserve as well. cluster-autoscaler does that for pods with resource claims.
func (s *Simulator) Reserve(pod, node string) {
	s.c.Helper()
	s.ExpectFits(pod, node)
	p := s.get(pod)
	s.run(func(fwk.SharedLister) {
		if status := s.framework.RunReservePluginsReserve(s.c, s.states[p.UID], p, node); !status.IsSuccess() {
			s.c.Errorf("pod %s, Reserve on %s: %v", pod, node, status)
		}
	})
	p.Spec.NodeName = node
	s.placed = append(s.placed, p)
}

// Revert takes all pods from the nodes.
func (s *Simulator) Revert() { s.placed = nil }

// ExpectFits checks that a pod can run on a node.
func (s *Simulator) ExpectFits(pod, node string) {
	s.c.Helper()
	if reasons := s.Fits(pod, node); len(reasons) > 0 {
		s.c.Errorf("pod %s does not fit on %s: %q", pod, node, reasons)
	}
}

// ExpectRefused checks that a pod cannot run on a node for a reason.
func (s *Simulator) ExpectRefused(pod, node, reason string) {
	s.c.Helper()
	if reasons := s.Fits(pod, node); !slices.Contains(reasons, reason) {
		s.c.Errorf("pod %s on %s: reasons %q, want %q", pod, node, reasons, reason)
	}
}

func (s *Simulator) get(pod string) *corev1.Pod {
	s.c.Helper()
	p, err := s.c.Client().CoreV1().Pods(s.c.Namespace).Get(s.c, pod, metav1.GetOptions{})
	s.c.ExpectNoError(err, "get pod")
	return p
}

func (s *Simulator) run(plugins func(snapshot fwk.SharedLister)) {
	s.lister.SharedLister = internalcache.NewSnapshot(s.placed, s.nodes)
	plugins(s.lister)
	s.lister.SharedLister = nil
}
