// SPDX-License-Identifier: Apache-2.0

// Package apitest has a fake API server for tests of the driver, which compares the resourceVersion of a PATCH.
package apitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Server is a fake API server.
type Server struct {
	*fake.Clientset
	// Writes counts what has changed a PersistentVolume.
	Writes atomic.Int64
	// Before, if not nil, is called with each PATCH of a PersistentVolume, and can refuse it.
	Before func(patch string, volume *corev1.PersistentVolume) error
}

// New returns one with objects.
func New(objects ...runtime.Object) *Server {
	s := &Server{Clientset: fake.NewClientset(objects...)}
	s.PrependReactor("patch", "persistentvolumes", s.patch)
	return s
}

func (s *Server) patch(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	object, err := s.Tracker().Get(patch.GetResource(), "", patch.GetName())
	if err != nil {
		return true, nil, err
	}
	before := object.(*corev1.PersistentVolume)
	if s.Before != nil {
		if err := s.Before(string(patch.GetPatch()), before); err != nil {
			return true, nil, err
		}
	}
	var wanted metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch.GetPatch(), &wanted); err != nil {
		return true, nil, err
	}
	if wanted.ResourceVersion != before.ResourceVersion {
		return true, nil, apierrors.NewConflict(patch.GetResource().GroupResource(), patch.GetName(), errors.New("changed since it was read"))
	}
	data, err := json.Marshal(before)
	if err == nil {
		data, err = jsonpatch.MergePatch(data, patch.GetPatch())
	}
	after := &corev1.PersistentVolume{}
	if err = errors.Join(err, json.Unmarshal(data, after)); err != nil {
		return true, nil, err
	}
	after.ResourceVersion = fmt.Sprint(100 + s.Writes.Add(1))
	return true, after, s.Tracker().Update(patch.GetResource(), after, "")
}
