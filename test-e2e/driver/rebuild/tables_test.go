// SPDX-License-Identifier: Apache-2.0

package rebuild

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

const (
	driver = "reference.example.com"
	key    = "topology.example.com/node"
)

var named = Names{Driver: driver, TopologyKey: key}

// volumeOf returns a PersistentVolume, said as in "n1", or "released n1=uid1; in-use n1/first; begun n2/x".
func volumeOf(text string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", ResourceVersion: "1", Annotations: map[string]string{}},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "claim", UID: "uid"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "pv@n1"}},
		},
	}
	for i, part := range strings.Split(text, "; ") {
		name, value, _ := strings.Cut(part, " ")
		switch {
		case i == 0 && name == "released":
			pv.Annotations[storagehelpers.AnnHomeNodes] = value
		case i == 0 && name == "unlisted":
		case i == 0:
			var terms []corev1.NodeSelectorTerm
			for node := range strings.SplitSeq(name, ",") { // as external-provisioner writes it
				terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}})
			}
			if name == "foreign" {
				terms[0].MatchExpressions[0].Key = "other"
			}
			pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
		default:
			pv.Annotations[driver+"/"+name] = value
		}
	}
	return pv
}

// textOf is the other way round.
func textOf(pv *corev1.PersistentVolume) string {
	v := named.VolumeOf(pv)
	text := strings.Join(v.Affinity, ",")
	if homes, ok := pv.Annotations[storagehelpers.AnnHomeNodes]; ok {
		text = strings.TrimPrefix(text+"; released "+homes, "; ")
	}
	for _, name := range []string{annInUse, annBegun, annCopied, annShown, annCopy, annUnconfirmed, annReleasedFrom} {
		if value, ok := pv.Annotations[driver+"/"+name]; ok {
			text += "; " + name + " " + value
		}
	}
	return text
}

// clusterOf returns what the API server says, as in "S=n2 bound=n2 running=n1 cordoned=n1 off=n3 gone=n4".
func clusterOf(text string) Cluster {
	c := Cluster{Nodes: map[string]Node{}, Pods: map[string]bool{}}
	for _, n := range []string{"1", "2", "3"} {
		c.Nodes["n"+n] = Node{UID: "uid" + "1", IsUsable: true}
	}
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		node := c.Nodes[value]
		switch name {
		case "S":
			c.Selected = value
		case "noclaim":
			c.IsClaimGone = true
		case "bound":
			if !c.Pods[value] {
				c.Pods[value] = false
			}
		case "running":
			c.Pods[value] = true
		case "cordoned":
			node.IsUsable = false
			c.Nodes[value] = node
		case "off":
			node.IsUsable, node.IsOff = false, true
			c.Nodes[value] = node
		case "new":
			node.UID = "uid2"
			c.Nodes[value] = node
		case "gone":
			delete(c.Nodes, value)
		default:
			panic(field)
		}
	}
	return c
}

// TestServe is the contract's table "Which request to serve", asked by n2 unless it says otherwise.
func TestServe(t *testing.T) {
	for _, test := range []struct {
		volume, cluster, node string
		has                   bool
		want                  Answer
	}{
		// set: served where it is admitted
		{"n2", "S=n2", "n2", true, ServeCopy},
		{"n1,n2", "S=n1", "n2", true, ServeCopy},
		{"n2", "S=n1 cordoned=n2", "n2", true, ServeCopy},
		{"n1", "S=n2", "n2", true, Elsewhere},
		{"n2", "S=n2", "n2", false, Lost}, // never an empty volume for one that has existed
		{"n2; begun n3/x", "S=n2", "n2", true, ServeCopy},
		{"n2; unconfirmed n1=uid1; begun n2/x; copied n2/x", "S=n2", "n2", true, Wait},
		{"n2; in-use n1/first", "S=n2", "n2", true, InUse},
		{"n2", "S=n2 off=n2", "n2", true, Wait}, // the taint says that nothing writes there
		{"foreign", "S=n2", "n2", true, Elsewhere},
		// unset, S, and has the data
		{"released n2=uid1", "S=n2", "n2", true, Wait}, // the controller sets the affinity: a home can be used
		{"released n2=uid1", "S=n2 cordoned=n2", "n2", true, ServeCopy},
		{"released n2=uid1; in-use n2/first", "S=n2 cordoned=n2", "n2", true, ServeCopy},
		{"released n2=uid1", "S=n2 off=n2", "n2", true, Wait},
		{"released n2=uid1; begun n3/x", "S=n2 cordoned=n2", "n2", true, Wait},
		{"released n2=uid1", "S=n2 new=n2", "n2", true, Wait}, // recreated: it shows its copy first
		// unset, S, and does not have the data
		{"released n1=uid1", "S=n2", "n2", false, Rebuild},
		{"released n1=uid1; begun n2/x", "S=n2", "n2", false, Rebuild},
		{"released n1=uid1; begun n2/x; copied n2/x", "S=n2", "n2", false, Rebuild},
		{"released n1=uid1; begun n3/x", "S=n2", "n2", false, Wait},
		{"released n1=uid1; in-use n1/first", "S=n2", "n2", false, InUse},
		{"released n1=uid1; in-use n1/first", "S=n2 off=n1", "n2", false, InUse}, // until the controller has removed it
		{"released n1=uid1", "S=n2 gone=n2", "n2", false, Wait},
		{"released ", "S=n2", "n2", false, Rebuild}, // the driver finds no source, and says so
		// unset, is not S
		{"released n2=uid1", "S=n3 cordoned=n2", "n2", true, ServeCopy},
		{"released n2=uid1; begun n3/x", "S=n3 cordoned=n2", "n2", true, Elsewhere},
		{"released n2=uid1; begun n1/x", "S=n3 cordoned=n2", "n2", true, Wait},
		{"released n2=uid1", "cordoned=n2", "n2", true, ServeCopy},
		{"released n1=uid1", "S=n3", "n2", false, Elsewhere},
		{"released n1=uid1", "S=n3", "n2", true, Elsewhere},
		{"released n1=uid1; in-use n1/first", "S=n3", "n2", false, Elsewhere},
		// no claim
		{"n2", "noclaim", "n2", true, Elsewhere},
		{"released n1=uid1", "noclaim", "n2", false, Elsewhere},
	} {
		if got := Serve(named.VolumeOf(volumeOf(test.volume)), clusterOf(test.cluster), test.node, test.has); got != test.want {
			t.Errorf("%s; %s; %s, has it: %t: %s; expected %s", test.volume, test.cluster, test.node, test.has, got, test.want)
		}
	}
}

// TestNext is the contract's rules of release, of setting an affinity, and of its second look.
func TestNext(t *testing.T) {
	for _, test := range []struct{ volume, cluster, want string }{
		// release
		{"n1", "S=n1", ""},
		{"n1", "S=n1 cordoned=n1", "released: released n1=uid1; released-from n1"},
		{"n1", "S=n1 off=n1", "released: released n1=uid1; released-from n1"},
		{"n1", "S=n1 gone=n1", "released: released ; released-from n1"},
		{"n1,n2", "S=n1 cordoned=n1", ""}, // narrowing excludes nothing
		{"n1,n2", "S=n1 cordoned=n1 gone=n2", "released: released n1=uid1; released-from n1,n2"},
		{"n1; in-use n1/first", "S=n1 cordoned=n1", "released: released n1=uid1; in-use n1/first; released-from n1"},
		{"n1; copy y", "S=n1 cordoned=n1", "released: released n1=uid1; copy y; released-from n1"},
		{"n1", "noclaim cordoned=n1", ""},
		{"foreign", "S=n1", ""},
		// back to a home
		{"released n1=uid1; released-from n1", "S=n1", "returned: n1; unconfirmed n1=uid1; released-from n1"},
		{"released n1=uid1", "S=n1 cordoned=n1", ""},
		{"released n1=uid1", "S=n1 new=n1", ""}, // its disks may be empty
		{"released n1=uid1", "", "returned: n1; unconfirmed n1=uid1"},
		{"released n1=uid1", "S=n2", ""},
		{"released n1=uid1; in-use n1/first", "S=n2 running=n1", "returned: n1; in-use n1/first; unconfirmed n1=uid1"},
		{"released n1=uid1; in-use n1/first", "S=n2 bound=n1", ""},
		{"released n1=uid1,n3=uid1", "S=n3 cordoned=n1", "returned: n1,n3; unconfirmed n1=uid1,n3=uid1"},
		{"released n1=uid1; in-use n2/first", "S=n1", ""}, // it may be written elsewhere
		{"released n1=uid1", "noclaim", ""},
		{"unlisted", "S=n1", ""},
		// begun for a node that S does not name any more
		{"released n1=uid1; begun n2/x", "S=n2", ""},
		{"released n1=uid1; begun n2/x; copied n2/x", "S=n3", "sent elsewhere: released n1=uid1"},
		{"released n1=uid1; begun n2/x; copied n2/x", "S=n1", "sent elsewhere: released n1=uid1"},
		{"n1; begun n2/x; copied n2/x", "S=n2", "sent elsewhere: n1"}, // by hand
		// the copy is complete
		{"released n1=uid1; begun n2/x; copied n2/x", "S=n2 bound=n2 cordoned=n1", "rebuilt: n2; begun n2/x; copied n2/x; unconfirmed n1=uid1"},
		{"released n1=uid1; begun n2/x; copied n2/x", "S=n2 bound=n2", "rebuilt: n2; begun n2/x; copied n2/x; unconfirmed n1=uid1"},
		{"released n1=uid1; begun n2/x; copied n2/x", "S=n2 cordoned=n1", ""}, // no pod waits for it
		{"released n1=uid1; begun n2/x; copied n2/y", "S=n2 bound=n2 cordoned=n1", ""},
		{"released n1=uid1; copied n2/x", "S=n2 bound=n2 cordoned=n1", ""},
		{"released n1=uid1; begun n2/x; copied n2/x", "S=n2 bound=n2 gone=n2 cordoned=n1", ""},
		// the second look
		{"n2; begun n2/x; copied n2/x; unconfirmed n1=uid1", "S=n2", "confirmed: n2; copy x"},
		{"n2; begun n2/x; copied n2/x; unconfirmed n1=uid1; copy w", "", "confirmed: n2; copy x"},
		{"n2; begun n2/x; copied n2/x; unconfirmed n1=uid1; copy w", "S=n3", "taken back: released n1=uid1; copy w"},
		{"n2; begun n2/x; copied n2/x; unconfirmed n1=uid1", "S=n1", "taken back: released n1=uid1"},
		{"n2; begun n2/x; copied n2/x; unconfirmed n1=uid1", "noclaim", "confirmed: n2; copy x"},
		{"n1; unconfirmed n1=uid1; copy w", "S=n1", "confirmed: n1; copy w"},
		{"n1; unconfirmed n1=uid1; in-use n1/first", "S=n2 running=n1", "confirmed: n1; in-use n1/first"},
		{"n1; unconfirmed n1=uid1", "S=n2", "taken back: released n1=uid1"},
		{"n1; unconfirmed n1=uid1; begun n2/x; copied n2/x", "S=n1", "confirmed: n1"}, // not the copy of another node
		// flags of nodes that are off
		{"released n1=uid1; in-use n1/first", "S=n2 off=n1", "node is out of service: released n1=uid1"},
		{"n2; in-use n1/first", "S=n2 off=n1", "node is out of service: n2"}, // by hand
		{"n1; in-use n1/first", "S=n1 off=n1", "node is out of service: n1"},
		{"released ; in-use n1/first", "S=n2 gone=n1", ""}, // that it is deleted proves nothing
		// a node that has come back
		{"released ; shown n1/uid2/first; released-from n1", "S=n2 new=n1", "shown: released n1=uid2; released-from n1"},
		{"released n1=uid1; shown n1/uid2/x; copy x; released-from n1", "S=n2 new=n1", "shown: released n1=uid2; copy x; released-from n1"},
		{"released ; shown n1/uid2/first; copy x; released-from n1", "S=n2 new=n1", "shown: released ; copy x; released-from n1"},
		{"released ; shown n1/uid1/first; released-from n1", "S=n2 new=n1", "shown: released ; released-from n1"},
		{"released ; shown n3/uid1/first; released-from n1", "S=n2", "shown: released ; released-from n1"},
		{"released ; shown n1/uid2/first; released-from n1", "noclaim new=n1", "shown: released n1=uid2; released-from n1"},
	} {
		pv := volumeOf(test.volume)
		change := named.Next(named.VolumeOf(pv), clusterOf(test.cluster))
		got := ""
		if change != nil {
			got = change.Reason + ": " + textOf(apply(pv, change))
		}
		if got != test.want {
			t.Errorf("%s; %s:\n got %q\nwant %q", test.volume, test.cluster, got, test.want)
		}
	}
}

// apply does what a PATCH does.
func apply(pv *corev1.PersistentVolume, change *Change) *corev1.PersistentVolume {
	pv = pv.DeepCopy()
	for name, value := range change.Annotations {
		if value == nil {
			delete(pv.Annotations, name)
		} else {
			pv.Annotations[name] = value.(string)
		}
	}
	if change.SetsAffinity {
		pv.Spec.NodeAffinity = nil
		if len(change.Affinity) > 0 {
			pv.Spec.NodeAffinity = volumeOf(strings.Join(change.Affinity, ",")).Spec.NodeAffinity
		}
	}
	return pv
}

// TestMarks is what a node writes of itself.
func TestMarks(t *testing.T) {
	for _, test := range []struct {
		name   string
		volume string
		change func(v Volume) *Change
		want   string
	}{
		{"use", "n1; copy x", func(v Volume) *Change { return named.Use(v, "n1") }, "n1; in-use n1/x; copy x"},
		{"used", "n1; in-use n1/first", func(v Volume) *Change { return named.Use(v, "n1") }, ""},
		{"unuse", "n1; in-use n1/first", func(v Volume) *Change { return named.Unuse(v, "n1") }, "n1"},
		{"unused", "n1; in-use n2/first", func(v Volume) *Change { return named.Unuse(v, "n1") }, ""},
		{"begin again", "released n1=uid1; begun n2/x; copied n2/x", func(Volume) *Change { return named.Begin("n2", "y") }, "released n1=uid1; begun n2/y"},
		{"complete", "released n1=uid1; begun n2/x", func(v Volume) *Change { return named.Complete(v, "n2", "x") }, "released n1=uid1; begun n2/x; copied n2/x"},
		{"cancel", "released n1=uid1; begun n2/x; copied n2/x", func(v Volume) *Change { return named.Cancel(v, "n2") }, "released n1=uid1"},
		{"nothing to cancel", "released n1=uid1; begun n3/x", func(v Volume) *Change { return named.Cancel(v, "n2") }, ""},
		{"show", "released ; released-from n1", func(v Volume) *Change { return named.Show(v, "n1", "uid2") }, "released ; shown n1/uid2/first; released-from n1"},
		{"listed", "released n1=uid2; released-from n1", func(v Volume) *Change { return named.Show(v, "n1", "uid2") }, ""},
		{"shown", "released ; shown n1/uid2/first; released-from n1", func(v Volume) *Change { return named.Show(v, "n1", "uid2") }, ""},
		{"never here", "released ; released-from n1", func(v Volume) *Change { return named.Show(v, "n2", "uid2") }, ""},
		{"in its place", "n1; released-from n1", func(v Volume) *Change { return named.Show(v, "n1", "uid2") }, ""},
	} {
		pv, got := volumeOf(test.volume), ""
		if change := test.change(named.VolumeOf(pv)); change != nil {
			got = textOf(apply(pv, change))
		}
		if got != test.want {
			t.Errorf("%s: %q; expected %q", test.name, got, test.want)
		}
	}
	for text, want := range map[string]bool{
		"released n1=uid1; begun n2/x": true, "released n1=uid1; begun n2/y": false, "released n1=uid1": false, "n1; begun n2/x": false,
		"n2; begun n2/x; unconfirmed n1=uid1": true, "foreign; begun n2/x": false,
	} {
		if got := IsWanted(named.VolumeOf(volumeOf(text)), "n2", "x"); got != want {
			t.Errorf("%s: wanted: %t; expected %t", text, got, want)
		}
	}
}

// TestNever goes through all states that the controller and three nodes can make of a volume, in any order. In none of them
// can two nodes write, and a node never serves a copy that misses what was written elsewhere.
func TestNever(t *testing.T) {
	nodes := []string{"n1", "n2", "n3"}
	copyOf := map[string]string{"n1": FirstCopy, "n2": "c2", "n3": "c3"}
	nodeOf := map[string]int{FirstCopy: 0, "c2": 1, "c3": 2}
	var clusters []string
	for _, s := range nodes {
		for _, cordoned := range []string{"", " cordoned=n1", " cordoned=n2", " cordoned=n1 cordoned=n2", " off=n1", " running=n1"} {
			clusters = append(clusters, fmt.Sprintf("S=%s bound=%s%s", s, s, cordoned))
		}
	}
	type state struct {
		volume  string
		isFresh [3]bool // whether the copy of a node has all that was written
	}
	first := state{"n1", [3]bool{true, false, false}}
	seen, todo := map[state]bool{first: true}, []state{first}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		for _, cluster := range clusters {
			pv, c := volumeOf(at.volume), clusterOf(cluster)
			v := named.VolumeOf(pv)
			next := func(change *Change, isFresh [3]bool) {
				if change == nil {
					return
				}
				after := apply(pv, change)
				if w := named.VolumeOf(after); w.InUse.Node != "" && w.Begun.Node != "" && w.InUse.Node != w.Begun.Node {
					t.Fatalf("%v; %s: %q has both flags", at, cluster, textOf(after))
				}
				if s := (state{textOf(after), isFresh}); !seen[s] {
					seen[s], todo = true, append(todo, s)
				}
			}
			next(named.Next(v, c), at.isFresh)
			for i, n := range nodes {
				switch Serve(v, c, n, v.Copy == copyOf[n]) {
				case ServeCopy:
					if !at.isFresh[i] {
						t.Fatalf("%v; %s: %s serves an old copy", at, cluster, n)
					}
					var isFresh [3]bool
					isFresh[i] = true
					next(named.Use(v, n), isFresh)
				case Rebuild:
					isFresh := at.isFresh
					isFresh[i] = at.isFresh[nodeOf[v.Copy]]
					next(named.Begin(n, copyOf[n]), isFresh)
				}
				if IsWanted(v, n, copyOf[n]) {
					next(named.Complete(v, n, copyOf[n]), at.isFresh)
				}
				if !v.IsUnconfirmed {
					next(named.Cancel(v, n), at.isFresh)
				}
				next(named.Unuse(v, n), at.isFresh)
			}
		}
	}
	t.Logf("%d states", len(seen))
	if len(seen) < 80 {
		t.Error("expected more states: does the volume still move?")
	}
}
