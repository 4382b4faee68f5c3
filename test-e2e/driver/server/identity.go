package server

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"k8s.io/klog/v2"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// Identity is the identity service.
type Identity struct {
	csi.UnimplementedIdentityServer
	// Driver is the name of the CSIDriver.
	Driver string
}

// GetPluginInfo returns the name of the driver.
func (i *Identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: i.Driver, VendorVersion: "dev"}, nil
}

// GetPluginCapabilities says that there is a controller service, and that volumes are
// not everywhere.
func (i *Identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	var capabilities []*csi.PluginCapability
	for _, t := range []csi.PluginCapability_Service_Type{csi.PluginCapability_Service_CONTROLLER_SERVICE, csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS} {
		capabilities = append(capabilities, &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}})
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: capabilities}, nil
}

// Probe returns that the driver is ready: it serves only when it is.
func (i *Identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

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
