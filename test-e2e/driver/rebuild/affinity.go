package rebuild

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

const (
	// annBegun has the node for which a copy was begun. It counts while the claim is
	// sent there.
	annBegun = "reference.csi.capacityv2.internal/begun"
	// annUnconfirmed is there while an affinity was set and the claim was not read
	// again. Its value is the list of home nodes from before.
	annUnconfirmed = "reference.csi.capacityv2.internal/unconfirmed"
	// annReleased has the nodes that were named when the volume was released last, also those without a Node object.
	annReleased = "reference.csi.capacityv2.internal/released-from"
)

// placer writes the node affinities of a driver, whose topology has a key.
type placer struct {
	client      kubernetes.Interface
	driver, key string
	// seesPods is whether it may list pods. Nodes need not.
	seesPods bool
}

type getNode func(ctx context.Context, name string) (*corev1.Node, error)

// live gets a node from the API server. Only that says that one is gone.
func (p *placer) live(ctx context.Context, name string) (*corev1.Node, error) {
	return p.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
}

func (p *placer) isOurs(pv *corev1.PersistentVolume) bool {
	return pv.Spec.CSI != nil && pv.Spec.CSI.Driver == p.driver
}

// named returns the nodes in the node affinity, sorted. None: the volume is released, or confirm fails.
func (p *placer) named(pv *corev1.PersistentVolume) (nodes []string) {
	if a := pv.Spec.NodeAffinity; a != nil && a.Required != nil {
		for _, term := range a.Required.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if e.Key == p.key && e.Operator == corev1.NodeSelectorOpIn {
					nodes = append(nodes, e.Values...)
				}
			}
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// has tells whether a node is where a volume is said to be, which needs no claim.
func (p *placer) has(pv *corev1.PersistentVolume, node string) bool {
	homes, _ := storagehelpers.HomeNodesOf(pv)
	names := p.named(pv)
	if len(names) == 0 {
		names = strings.Split(pv.Annotations[annReleased], ",")
	}
	return slices.Contains(append(names, namesOf(homes)...), node)
}

// presentOf returns which nodes exist, as the same objects where these are known, and whether one of them can
// be used. It does not look at whether a node is ready: one that is not may still write.
func presentOf(ctx context.Context, get getNode, nodes []storagehelpers.HomeNode) (present []storagehelpers.HomeNode, usable bool, err error) {
	for _, n := range nodes {
		node, err := get(ctx, n.Name)
		if apierrors.IsNotFound(err) || err == nil && n.UID != "" && node.UID != n.UID {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		present = append(present, storagehelpers.HomeNode{Name: n.Name, UID: node.UID})
		usable = usable || isUsable(node)
	}
	return present, usable, nil
}

func namesOf(nodes []storagehelpers.HomeNode) (names []string) {
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

func isUsable(node *corev1.Node) bool { return !node.Spec.Unschedulable && !isOutOfService(node) }

func isOutOfService(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeOutOfService })
}

// selectedNode returns where the claim of a volume was sent last. It does not use a cache,
// which may be old.
func (p *placer) selectedNode(ctx context.Context, pv *corev1.PersistentVolume) (string, error) {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return "", status.Errorf(codes.Aborted, "PersistentVolume %s is not bound", pv.Name)
	}
	claim, err := p.client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && claim.UID != ref.UID {
		return "", status.Errorf(codes.Aborted, "the claim of PersistentVolume %s is gone", pv.Name)
	}
	if err != nil {
		return "", err
	}
	return selected(claim), nil
}

func selected(claim *corev1.PersistentVolumeClaim) string {
	return claim.Annotations[storagehelpers.AnnSelectedNode]
}

// isUsedOn tells whether a pod that runs on one of the nodes has the claim of a volume, if that can be seen.
func (p *placer) isUsedOn(ctx context.Context, pv *corev1.PersistentVolume, nodes []string) (bool, error) {
	if !p.seesPods {
		return false, nil
	}
	pods, err := p.client.CoreV1().Pods(pv.Spec.ClaimRef.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodRunning && slices.Contains(nodes, pod.Spec.NodeName) &&
			slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
				claim := v.PersistentVolumeClaim
				return claim != nil && claim.ClaimName == pv.Spec.ClaimRef.Name ||
					v.Ephemeral != nil && ephemeral.VolumeClaimName(&pod, &v) == pv.Spec.ClaimRef.Name
			})
	}), nil
}

func elsewhere(pv *corev1.PersistentVolume) error {
	return status.Errorf(codes.Aborted, "the claim of volume %s was sent elsewhere", pv.Spec.CSI.VolumeHandle)
}

// release unsets the node affinity, and says which nodes have the data, and from which it was released.
func (p *placer) release(ctx context.Context, pv *corev1.PersistentVolume, homes, from, reason string) error {
	_, err := p.patch(ctx, pv, reason, map[string]any{storagehelpers.AnnHomeNodes: homes, annReleased: from, annUnconfirmed: nil, annBegun: nil}, nil)
	return err
}

// set sets the node affinity of a released volume, if it admits the node where its claim was
// sent last, or there is none, or a pod uses the volume on one of the nodes all the time. The scheduler writes the
// claim first and reads the volume then; this is the other way round, so one of both notices.
func (p *placer) set(ctx context.Context, pv *corev1.PersistentVolume, nodes []string, reason string) error {
	fits, err := p.fits(ctx, pv, nodes)
	if err != nil || !fits {
		return cmp.Or(err, elsewhere(pv))
	}
	pv, err = p.patch(ctx, pv, reason, map[string]any{
		storagehelpers.AnnHomeNodes: nil, annUnconfirmed: pv.Annotations[storagehelpers.AnnHomeNodes],
	}, nodes)
	if err != nil {
		return err
	}
	_, err = p.confirm(ctx, pv)
	return err
}

func (p *placer) fits(ctx context.Context, pv *corev1.PersistentVolume, nodes []string) (bool, error) {
	sent, err := p.selectedNode(ctx, pv)
	if err != nil || sent == "" || slices.Contains(nodes, sent) {
		return err == nil, err
	}
	return p.isUsedOn(ctx, pv, nodes)
}

// confirm looks again whether an affinity fits after it was set, perhaps by a process that was
// killed then, and releases the volume again if it does not. A node affinity that
// names no node is somebody else's. It gets Aborted, because what comes next would replace it.
func (p *placer) confirm(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	if pv.Spec.NodeAffinity != nil && len(p.named(pv)) == 0 {
		return nil, status.Errorf(codes.Aborted, "the node affinity of PersistentVolume %s names no node by %s", pv.Name, p.key)
	}
	before, ok := pv.Annotations[annUnconfirmed]
	if !ok {
		return pv, nil
	}
	fits, err := p.fits(ctx, pv, p.named(pv))
	if err != nil {
		return nil, err
	}
	if !fits {
		return nil, cmp.Or(p.release(ctx, pv, before, pv.Annotations[annReleased], "taken back"), elsewhere(pv))
	}
	return p.patch(ctx, pv, "", map[string]any{annUnconfirmed: nil, annBegun: nil}, p.named(pv))
}

// patch changes annotations and the node affinity, unless the PersistentVolume was changed
// since it was read. A nil annotation is removed. The API server needs the feature gate
// MutablePVNodeAffinity.
func (p *placer) patch(ctx context.Context, pv *corev1.PersistentVolume, reason string, annotations map[string]any, nodes []string) (*corev1.PersistentVolume, error) {
	var affinity *corev1.VolumeNodeAffinity
	if len(nodes) > 0 {
		affinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: p.key, Operator: corev1.NodeSelectorOpIn, Values: nodes}},
		}}}}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": pv.ResourceVersion, "annotations": annotations},
		"spec":     map[string]any{"nodeAffinity": affinity},
	})
	if err != nil {
		return nil, err
	}
	changed, err := p.client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, fmt.Errorf("change where PersistentVolume %s is: %w", pv.Name, err)
	}
	if reason != "" {
		klog.FromContext(ctx).Info("Changed node affinity", "PV", pv.Name, "reason", reason, "nodes", nodes, "annotations", annotations)
	}
	return changed, nil
}
