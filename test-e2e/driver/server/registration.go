package server

import (
	"context"

	"k8s.io/klog/v2"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Registration is the service that a kubelet asks about the driver. The kubelet watches
// a folder for the sockets of such services, so that the driver needs no sidecar to
// register it.
type Registration struct {
	registerapi.UnimplementedRegistrationServer
	// Driver is the name of the CSIDriver.
	Driver string
	// Endpoint is the path of the socket with the CSI services, where the kubelet finds
	// it.
	Endpoint string
	// Failed gets the reason when the kubelet does not take the driver. It then has to
	// be started again.
	Failed func(reason string)
}

// GetInfo returns what is to be registered.
func (r *Registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: r.Driver, Endpoint: r.Endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus is told how it went.
func (r *Registration) NotifyRegistrationStatus(ctx context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if s.PluginRegistered {
		klog.FromContext(ctx).Info("Registered with the kubelet", "driver", r.Driver)
	} else {
		r.Failed(s.Error)
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}
