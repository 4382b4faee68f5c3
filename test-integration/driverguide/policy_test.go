// SPDX-License-Identifier: Apache-2.0

package driverguide

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/test/utils/ktesting"

	"capacityv2.internal/test-integration/clustertest"
)

const (
	reference         = "reference.csi.capacityv2.internal"
	referenceKey      = "topology." + reference + "/node"
	provisionerMarker = "external-provisioner.volume.kubernetes.io/finalizer"
)

// startPolicy starts an API server with the manifests of the driver, and without controllers.
func startPolicy(t *testing.T) *clustertest.Cluster {
	t.Helper()
	tCtx := ktesting.Init(t)
	c := clustertest.Connect(tCtx, clustertest.StartGateOn(tCtx, clustertest.NewStorage(),
		"--allow-privileged", "--feature-gates=MutablePVNodeAffinity=true", "--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection"))
	for _, file := range []string{"driver.yaml", "rbac.yaml", "policy.yaml"} {
		create(c, filepath.Join("..", "..", "test-e2e", "driver", "deploy", file))
	}
	return c
}

// waitForPolicy waits until the policy denies a request. Before that, RBAC may do so.
func waitForPolicy(c *clustertest.Cluster, request func(ctx context.Context) error) {
	c.Helper()
	c.Eventually(func(ctx context.Context) error {
		if err := request(ctx); err == nil || !strings.Contains(err.Error(), "ValidatingAdmissionPolicy") {
			return fmt.Errorf("the policy is not in force yet: %v", err)
		}
		return nil
	})
}

// account is who writes: the driver on a node, or its controller.
func account(c *clustertest.Cluster, name, node string) kubernetes.Interface {
	c.Helper()
	config := rest.CopyConfig(c.RESTConfig())
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:reference-csi:" + name}
	if node != "" { // as a token of a pod has it
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {node}}
	}
	client, err := kubernetes.NewForConfig(config)
	c.ExpectNoError(err, "make a client")
	return client
}

type change = func(pv *corev1.PersistentVolume)

func note(pairs ...string) change {
	return func(pv *corev1.PersistentVolume) {
		for i := 0; i < len(pairs); i += 2 {
			key := pairs[i]
			if key == "homes" {
				key = storagehelpers.AnnHomeNodes
			} else if !strings.Contains(key, ".") {
				key = reference + "/" + key
			}
			if pairs[i+1] == "" {
				delete(pv.Annotations, key)
			} else {
				metav1.SetMetaDataAnnotation(&pv.ObjectMeta, key, pairs[i+1])
			}
		}
	}
}

func on(nodes ...string) change {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = nil
		if len(nodes) > 0 {
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: referenceKey, Operator: corev1.NodeSelectorOpIn, Values: nodes}},
			}}}}
		}
	}
}

func term(pv *corev1.PersistentVolume) *corev1.NodeSelectorTerm {
	return &pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0]
}

func phase(p corev1.PersistentVolumePhase) change {
	return func(pv *corev1.PersistentVolume) { pv.Status.Phase = p }
}

func all(changes ...change) change {
	return func(pv *corev1.PersistentVolume) {
		for _, do := range changes {
			do(pv)
		}
	}
}

func unfinalized(pv *corev1.PersistentVolume) {
	pv.Finalizers = slices.DeleteFunc(slices.Clone(pv.Finalizers), func(f string) bool { return f == provisionerMarker })
}

// TestPolicy has what a node and the controller may do, and all that a compromised node may not do: with the
// manifests of the reference driver, on a real API server.
func TestPolicy(t *testing.T) {
	c := startPolicy(t)
	node, controller, nobody := account(c, "reference-node", "n1"), account(c, "reference-controller", ""), account(c, "reference-node", "")
	// More than the manifests: the policy has to hold alone.
	_, err := c.Client().RbacV1().ClusterRoleBindings().Create(c, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "reference-csi", Name: "reference-controller"}},
	}, metav1.CreateOptions{})
	c.ExpectNoError(err, "bind a role")
	waitForPolicy(c, func(ctx context.Context) error {
		pv := referenceVolume("waits")
		pv.Spec.CSI.VolumeHandle = "other@n2"
		_, err := node.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	released := all(on(), note("homes", "n1=uid1", "released-from", "n1"))
	elsewhere := all(on(), note("homes", "n2=uid2"))
	const (
		another     = "it is a volume of another driver"
		noNode      = "the token has no node"
		affinity    = "only the controller may change spec.nodeAffinity"
		spec        = "only spec.nodeAffinity may change"
		annotations = "only the annotations of the driver may change"
		itself      = "a node may only say something of itself"
		takeBack    = "the controller may only take back"
		both        = "one node may write to the volume, and another one copies it"
		unset       = "a copy may only be begun, completed or shown while"
		notHere     = "the volume is not on the node that wants to write to it"
		makes       = "the controller makes and deletes nothing"
		handle      = "the volume is not named as one of the node"
		alone       = "the volume is not on the node alone"
		secrets     = "the volume has secrets"
		fresh       = "a new volume has no annotations"
		finalizer   = "only the finalizer of external-provisioner may change"
		deletes     = "only the node that has the volume may delete it"
	)
	for name, test := range map[string]struct {
		who    kubernetes.Interface
		before change // of a volume on n1
		now    change // nil: deleted
		denied string
	}{
		// CREATE
		"create":                   {node, nil, all(), ""},
		"create without a node":    {nobody, nil, all(), noNode},
		"create by the controller": {controller, nil, all(), makes},
		"create of another driver": {node, nil, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other" }, another},
		"create without CSI": {node, nil, func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		}, another},
		"create with the handle of n2": {node, nil, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = pv.Name + "@n2" }, handle},
		"create with another handle":   {node, nil, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "other@n1" }, handle},
		"create on n2":                 {node, nil, on("n2"), alone},
		"create on both":               {node, nil, on("n1", "n2"), alone},
		"create everywhere":            {node, nil, on(), alone},
		"create not on n1":             {node, nil, func(pv *corev1.PersistentVolume) { term(pv).MatchExpressions[0].Operator = corev1.NodeSelectorOpNotIn }, alone},
		"create with another key":      {node, nil, func(pv *corev1.PersistentVolume) { term(pv).MatchExpressions[0].Key = "zone" }, alone},
		"create with a second term": {node, nil, func(pv *corev1.PersistentVolume) {
			r := pv.Spec.NodeAffinity.Required
			r.NodeSelectorTerms = append(r.NodeSelectorTerms, r.NodeSelectorTerms[0])
		}, alone},
		"create with a second key": {node, nil, func(pv *corev1.PersistentVolume) {
			term(pv).MatchExpressions = append(term(pv).MatchExpressions, term(pv).MatchExpressions[0])
		}, alone},
		"create with a field": {node, nil, func(pv *corev1.PersistentVolume) {
			term(pv).MatchFields = []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"n2"}}}
		}, alone},
		"create with a secret to stage": {node, nil, func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Name: "s", Namespace: "kube-system"}
		}, secrets},
		"create with a secret to publish": {node, nil, func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Name: "s", Namespace: "kube-system"}
		}, secrets},
		"create with a secret to expand": {node, nil, func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.NodeExpandSecretRef = &corev1.SecretReference{Name: "s", Namespace: "kube-system"}
		}, secrets},
		"create with a secret to attach": {node, nil, func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.ControllerPublishSecretRef = &corev1.SecretReference{Name: "s", Namespace: "kube-system"}
		}, secrets},
		"create with a secret to resize": {node, nil, func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.ControllerExpandSecretRef = &corev1.SecretReference{Name: "s", Namespace: "kube-system"}
		}, secrets},
		"create with a list": {node, nil, note("homes", "n1=uid1"), fresh},
		"create with a copy": {node, nil, note("copy", "x"), fresh},
		"create with a flag": {node, nil, note("in-use", "n1/first"), fresh},
		"create with others": {node, nil, note("pv.kubernetes.io/provisioned-by", reference), ""},

		// flags
		"use":                       {node, all(), note("in-use", "n1/first"), ""},
		"use what is listed":        {node, released, note("in-use", "n1/first"), ""},
		"use, as n2":                {node, all(), note("in-use", "n2/first"), itself},
		"use, as n11":               {node, all(), note("in-use", "n11/first"), itself},
		"use without a node":        {nobody, all(), note("in-use", "/first"), noNode},
		"use what is on n2":         {node, on("n2"), note("in-use", "n1/first"), notHere},
		"use what is listed on n2":  {node, elsewhere, note("in-use", "n1/first"), notHere},
		"use no more":               {node, note("in-use", "n1/first"), note("in-use", ""), ""},
		"use no more, of n2":        {node, note("in-use", "n2/first"), note("in-use", ""), itself},
		"take the use from n2":      {node, note("in-use", "n2/first"), note("in-use", "n1/first"), itself},
		"begin":                     {node, elsewhere, note("begun", "n1/x"), ""},
		"begin, as n2":              {node, released, note("begun", "n2/x"), itself},
		"begin what is set":         {node, on("n2"), note("begun", "n1/x"), unset},
		"begin at length":           {node, elsewhere, note("begun", "n1/"+strings.Repeat("x", 300)), itself}, // or there is no room for what others have to say
		"begin what n2 uses":        {node, all(elsewhere, note("in-use", "n2/first")), note("begun", "n1/x"), both},
		"use what n2 has begun":     {node, all(released, note("begun", "n2/x")), note("in-use", "n1/first"), both},
		"begin what n2 has begun":   {node, all(elsewhere, note("begun", "n2/x")), note("begun", "n1/x"), itself},
		"complete":                  {node, all(elsewhere, note("begun", "n1/x")), note("copied", "n1/x"), ""},
		"complete, as n2":           {node, all(elsewhere, note("begun", "n2/x")), note("copied", "n2/x"), itself},
		"complete what is set":      {node, on("n2"), note("copied", "n1/x"), unset},
		"cancel":                    {node, all(elsewhere, note("begun", "n1/x", "copied", "n1/x")), note("begun", "", "copied", ""), ""},
		"cancel what is set":        {node, note("begun", "n1/x"), note("begun", ""), ""},
		"cancel n2":                 {node, all(released, note("begun", "n2/x")), note("begun", ""), itself},
		"show":                      {node, all(on(), note("released-from", "n1")), note("shown", "n1/uid2/first"), ""},
		"show at length":            {node, released, note("shown", "n1/"+strings.Repeat("x", 300)), itself},
		"show what is set":          {node, on("n2"), note("shown", "n1/uid2/first"), unset},
		"show, as n2":               {node, all(on(), note("released-from", "n2")), note("shown", "n2/uid2/first"), itself},
		"list itself":               {node, elsewhere, note("homes", "n1=uid1"), annotations},
		"list nobody":               {node, released, note("homes", ""), annotations},
		"name the copy that counts": {node, all(), note("copy", "n1/x"), annotations},
		"confirm":                   {node, note("unconfirmed", "n1=uid1"), note("unconfirmed", ""), annotations},
		"say where it was":          {node, released, note("released-from", "n1/x"), annotations},
		"another annotation":        {node, all(), note("other.example.com/a", "n1/x"), annotations},
		"another annotation gone":   {node, note("other.example.com/a", "n1/x"), note("other.example.com/a", ""), annotations},
		"release":                   {node, all(), on(), affinity},
		"name itself":               {node, elsewhere, on("n1"), affinity},
		"change the claim":          {node, all(), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Name = "other" }, spec},
		"change the policy": {node, all(), func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, spec},
		"change labels":               {node, all(), func(pv *corev1.PersistentVolume) { pv.Labels = map[string]string{"a": "b"} }, spec},
		"change another driver's":     {node, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other" }, note("in-use", "n1/first"), another},
		"take the finalizer":          {node, phase(corev1.VolumeReleased), unfinalized, ""},
		"take it after a failure":     {node, phase(corev1.VolumeFailed), unfinalized, ""},
		"take it from what is bound":  {node, phase(corev1.VolumeBound), unfinalized, finalizer},
		"take it from n2":             {node, all(on("n2"), phase(corev1.VolumeReleased)), unfinalized, finalizer},
		"take another finalizer":      {node, phase(corev1.VolumeReleased), func(pv *corev1.PersistentVolume) { pv.Finalizers = []string{provisionerMarker} }, finalizer},
		"take it from what is listed": {node, all(released, phase(corev1.VolumeReleased)), unfinalized, ""},

		// DELETE
		"delete":                       {node, phase(corev1.VolumeReleased), nil, ""},
		"delete what is listed":        {node, all(released, phase(corev1.VolumeReleased)), nil, ""},
		"delete what has failed":       {node, phase(corev1.VolumeFailed), nil, ""},
		"delete what is bound":         {node, phase(corev1.VolumeBound), nil, deletes},
		"delete what is on n2":         {node, all(on("n2"), phase(corev1.VolumeReleased)), nil, deletes},
		"delete what is listed on n2":  {node, all(elsewhere, phase(corev1.VolumeReleased)), nil, deletes},
		"delete what is not on n1":     {node, all(func(pv *corev1.PersistentVolume) { term(pv).MatchExpressions[0].Operator = corev1.NodeSelectorOpNotIn }, phase(corev1.VolumeReleased)), nil, deletes},
		"delete without a node":        {nobody, phase(corev1.VolumeReleased), nil, noNode},
		"delete another driver's":      {node, all(phase(corev1.VolumeReleased), func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other" }), nil, another},
		"delete by the controller":     {controller, phase(corev1.VolumeReleased), nil, makes},
		"controller releases":          {controller, all(), released, ""},
		"controller takes flags":       {controller, all(released, note("in-use", "n1/first")), note("in-use", ""), ""},
		"controller sets flags":        {controller, released, note("begun", "n1/x"), takeBack},
		"controller names a copy":      {controller, note("unconfirmed", "n1=uid1"), note("unconfirmed", "", "copy", "x"), ""},
		"controller changes the claim": {controller, all(), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Name = "other" }, spec},
		"controller, other annotation": {controller, all(), note("other.example.com/a", "b"), annotations},
		"controller takes a finalizer": {controller, phase(corev1.VolumeReleased), unfinalized, finalizer},
	} {
		t.Run(name, func(t *testing.T) {
			pv := referenceVolume("pv-" + fmt.Sprint(len(name)) + "-" + strings.ToLower(strings.Map(func(r rune) rune {
				if r == ' ' || r == ',' || r == '\'' {
					return '-'
				}
				return r
			}, name)))
			core := test.who.CoreV1().PersistentVolumes()
			if test.before == nil {
				test.now(pv)
				_, err := core.Create(c, pv, metav1.CreateOptions{})
				expectDenied(t, err, test.denied)
				return
			}
			test.before(pv)
			want := pv.Status.Phase
			before, err := c.Client().CoreV1().PersistentVolumes().Create(c, pv, metav1.CreateOptions{})
			c.ExpectNoError(err, "create the volume")
			before.Status.Phase = want
			before, err = c.Client().CoreV1().PersistentVolumes().UpdateStatus(c, before, metav1.UpdateOptions{})
			c.ExpectNoError(err, "set the phase")
			if test.now == nil {
				expectDenied(t, core.Delete(c, pv.Name, metav1.DeleteOptions{}), test.denied)
				return
			}
			now := before.DeepCopy()
			test.now(now)
			_, err = core.Patch(c, pv.Name, types.MergePatchType, mergePatch(c, before, now), metav1.PatchOptions{})
			expectDenied(t, err, test.denied)
		})
	}
}

// referenceVolume is one that external-provisioner makes on n1.
func referenceVolume(name string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{provisionerMarker, "kubernetes.io/pv-protection"}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			ClaimRef:                      &corev1.ObjectReference{Namespace: "default", Name: "claim", UID: "uid"},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: reference, VolumeHandle: name + "@n1"}},
		},
	}
	on("n1")(pv)
	return pv
}

// mergePatch has annotations, the affinity and whatever else differs.
func mergePatch(c *clustertest.Cluster, before, now any) []byte {
	c.Helper()
	var a, b map[string]any
	for object, to := range map[any]*map[string]any{before: &a, now: &b} {
		text, err := json.Marshal(object)
		if err == nil {
			err = json.Unmarshal(text, to)
		}
		c.ExpectNoError(err, "convert an object")
	}
	patch, err := json.Marshal(differences(a, b))
	c.ExpectNoError(err, "make a patch")
	return patch
}

func differences(a, b map[string]any) map[string]any {
	patch := maps.Clone(b)
	for key, old := range a {
		oldMap, isMap := old.(map[string]any)
		newMap, staysMap := b[key].(map[string]any)
		if isMap && staysMap {
			patch[key] = differences(oldMap, newMap)
		} else if _, ok := b[key]; !ok {
			patch[key] = nil
		}
	}
	return patch
}

func expectDenied(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil {
		t.Errorf("refused: %v", err)
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want) || !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err)) {
		t.Errorf("got %v; expected that it is denied: %s", err, want)
	}
}

// TestClaimPolicy has what a node may do to claims.
func TestClaimPolicy(t *testing.T) {
	c := startPolicy(t)
	node, nobody := account(c, "reference-node", "n1"), account(c, "reference-node", "")
	claim := func(name, selected string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Finalizers: []string{"example.com/f"}, Annotations: map[string]string{storagehelpers.AnnSelectedNode: selected, "a": "b"}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}
	}
	reject := func(claim *corev1.PersistentVolumeClaim) { delete(claim.Annotations, storagehelpers.AnnSelectedNode) }
	const selected, other = "a node may only take away the selected node that names it", "nothing else of the claim may change"
	first, err := c.Client().CoreV1().PersistentVolumeClaims("default").Create(c, claim("first", "n2"), metav1.CreateOptions{})
	c.ExpectNoError(err, "create a claim")
	waitForPolicy(c, func(ctx context.Context) error {
		now := first.DeepCopy()
		reject(now)
		_, err := node.CoreV1().PersistentVolumeClaims("default").Update(ctx, now, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	for name, test := range map[string]struct {
		who      kubernetes.Interface
		selected string
		now      func(*corev1.PersistentVolumeClaim)
		denied   string
	}{
		"reject":          {node, "n1", reject, ""},
		"reject-for-n2":   {node, "n2", reject, selected},
		"no-node":         {nobody, "", reject, selected},
		"select":          {node, "n2", func(c *corev1.PersistentVolumeClaim) { c.Annotations[storagehelpers.AnnSelectedNode] = "n1" }, selected},
		"send-away":       {node, "n1", func(c *corev1.PersistentVolumeClaim) { c.Annotations[storagehelpers.AnnSelectedNode] = "n2" }, selected},
		"annotation":      {node, "n1", func(c *corev1.PersistentVolumeClaim) { reject(c); c.Annotations["a"] = "c" }, selected},
		"annotation-gone": {node, "n1", func(c *corev1.PersistentVolumeClaim) { reject(c); delete(c.Annotations, "a") }, selected},
		"annotation-more": {node, "n1", func(c *corev1.PersistentVolumeClaim) { reject(c); c.Annotations["c"] = "d" }, selected},
		"label":           {node, "n1", func(c *corev1.PersistentVolumeClaim) { reject(c); c.Labels = map[string]string{"a": "b"} }, other},
		"finalizer":       {node, "n1", func(c *corev1.PersistentVolumeClaim) { reject(c); c.Finalizers = nil }, other},
		"volume":          {node, "n1", func(c *corev1.PersistentVolumeClaim) { reject(c); c.Spec.VolumeName = "pv" }, other},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := c.Client().CoreV1().PersistentVolumeClaims("default").Create(c, claim(name, test.selected), metav1.CreateOptions{})
			c.ExpectNoError(err, "create a claim")
			now := before.DeepCopy()
			test.now(now)
			_, err = test.who.CoreV1().PersistentVolumeClaims("default").Update(c, now, metav1.UpdateOptions{})
			expectDenied(t, err, test.denied)
		})
	}
}
