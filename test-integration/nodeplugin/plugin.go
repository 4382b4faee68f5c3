package nodeplugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	corev1 "k8s.io/api/core/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

const (
	// kubeletDir is what the kubelet calls its folder.
	kubeletDir = "/var/lib/kubelet"
	// registry is where, below its folder, a kubelet looks for plugins.
	registry = "plugins_registry"
)

// Plugin serves one kubelet.
type Plugin struct {
	registerapi.UnimplementedRegistrationServer
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer

	driver, node, dir string
	has               Has
	server            *grpc.Server
	served            chan error
}

// Has checks whether a volume, by its handle, is on a node. Others cannot be published
// there.
type Has func(volume, node string) bool

// Start serves the driver to the kubelet of a node, whose folder is dir here.
func Start(driver, node, dir string, has Has) (*Plugin, error) {
	p := &Plugin{driver: driver, node: node, dir: dir, has: has, server: grpc.NewServer(), served: make(chan error, 1)}
	if _, err := os.Stat(filepath.Join(dir, registry)); err != nil {
		return nil, fmt.Errorf("no kubelet in %s; expected the folder of one that runs: %w", dir, err)
	}
	socket, err := shortest(filepath.Join(dir, registry, driver+".sock"))
	if err != nil {
		return nil, err
	}
	// One that was killed leaves its socket behind.
	if other, err := net.Dial("unix", socket); err == nil {
		return nil, errors.Join(fmt.Errorf("another driver %s serves the kubelet of %s", driver, node), other.Close())
	}
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("serve the kubelet of %s: %w", node, err)
	}
	registerapi.RegisterRegistrationServer(p.server, p)
	csi.RegisterIdentityServer(p.server, p)
	csi.RegisterNodeServer(p.server, p)
	go func() { p.served <- p.server.Serve(listener) }()
	return p, nil
}

// StartAll serves the driver to the kubelets of the nodes of a cluster that make up
// has started, whose folder is cluster.
func StartAll(driver, cluster string, has Has, nodes ...string) (stop func() error, err error) {
	var plugins []*Plugin
	stop = func() error {
		var errs []error
		for _, p := range plugins {
			errs = append(errs, p.Stop())
		}
		return errors.Join(errs...)
	}
	for _, node := range nodes {
		p, err := Start(driver, node, filepath.Join(cluster, node, "kubelet"), has)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		plugins = append(plugins, p)
	}
	return stop, nil
}

// Stop ends the plugin and removes its socket, after which the kubelet forgets it.
func (p *Plugin) Stop() error {
	p.server.Stop()
	return <-p.served
}

// shortest returns the path, from the root or from here: that of a socket must not
// have more than 107 characters.
func shortest(path string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(here, absolute)
	if err != nil || len(relative) > len(absolute) {
		return absolute, nil
	}
	return relative, nil
}

// target returns where a path of the kubelet is here.
func (p *Plugin) target(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, kubeletDir+"/pods/")
	if !ok || !filepath.IsLocal(rest) {
		return "", status.Errorf(codes.InvalidArgument, "%q is no path of a pod", path)
	}
	return filepath.Join(p.dir, "pods", rest), nil
}

// GetInfo tells the kubelet what registers. One socket serves all.
func (p *Plugin) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type:              registerapi.CSIPlugin,
		Name:              p.driver,
		Endpoint:          filepath.Join(kubeletDir, registry, p.driver+".sock"),
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus is called by the kubelet, which also logs the status.
func (p *Plugin) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	return &registerapi.RegistrationStatusResponse{}, nil
}

// GetPluginInfo returns the name of the driver.
func (p *Plugin) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: p.driver, VendorVersion: "1"}, nil
}

// GetPluginCapabilities returns none.
func (p *Plugin) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

// Probe answers.
func (p *Plugin) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// NodeGetInfo returns the node, with which the volumes of the node come and go.
func (p *Plugin) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{
		NodeId:             p.node,
		AccessibleTopology: &csi.Topology{Segments: map[string]string{corev1.LabelHostname: p.node}},
	}, nil
}

// NodeGetCapabilities returns none: volumes get published, and nothing else.
func (p *Plugin) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume makes the folder of a volume that is on the node.
func (p *Plugin) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	dir, err := p.target(r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	if !p.has(r.GetVolumeId(), p.node) {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is not on node %s; it is published when it has been rebuilt there", r.GetVolumeId(), p.node)
	}
	return &csi.NodePublishVolumeResponse{}, os.MkdirAll(dir, 0o750)
}

// NodeUnpublishVolume removes the folder of a volume, with what the pod has written.
func (p *Plugin) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	dir, err := p.target(r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, os.RemoveAll(dir)
}
