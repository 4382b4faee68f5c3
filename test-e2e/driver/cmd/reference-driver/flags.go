package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"k8s.io/klog/v2"

	"capacityv2.internal/test-e2e/driver/pool"
)

// version is set when the driver is built.
var version = "dev"

type options struct {
	mode, driver, node, root, config, backing    string
	socket, registration, controller, kubeconfig string
	metrics                                      string
	poolFlags                                    []string
	pools                                        []pool.Pool
	reportPools                                  bool
	createDelay                                  time.Duration
}

func parse(arguments []string) (*options, error) {
	o := &options{}
	flags := pflag.NewFlagSet("reference-driver", pflag.ContinueOnError)
	flags.StringVar(&o.mode, "mode", "node", "node (runs on each node) or controller (runs once, and rebuilds volumes)")
	flags.StringVar(&o.driver, "driver", "reference.csi.capacityv2.internal", "name of the CSIDriver")
	flags.StringVar(&o.controller, "controller", "", "socket on which nodes ask the controller; without one, nodes do not rebuild volumes")
	flags.StringVar(&o.metrics, "metrics-address", "", "address of the metrics, such as :9808; none if empty")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "controller: how to reach the API server; empty in a pod")
	flags.StringVar(&o.node, "node", os.Getenv("NODE_NAME"), "node: its name; $NODE_NAME if empty")
	flags.StringVar(&o.root, "peers-root", "/var/lib/reference-csi", "node: folder that all nodes share, with what each node has below its name")
	flags.StringSliceVar(&o.poolFlags, "pools", nil, "node: pools, as NAME=PATH:SIZE; a relative path is below PEERS-ROOT/NODE/pools, where the other nodes can reach it")
	flags.StringVar(&o.config, "config", "", "node: YAML file with pools, instead of --pools")
	flags.StringVar(&o.backing, "backing", "folders", "node: what volumes are made of: folders, whose size the pool counts and nothing enforces, or images, files with ext4 on loop devices")
	flags.BoolVar(&o.reportPools, "report-pools", true, "node: report each pool, not only their sum and the largest")
	flags.DurationVar(&o.createDelay, "create-delay", 0, "node: delay added to the creation of a volume, for tests")
	flags.StringVar(&o.socket, "csi-address", "", "node: socket of the CSI services, where the kubelet finds it; /var/lib/kubelet/plugins/DRIVER/csi.sock if empty")
	flags.StringVar(&o.registration, "registration-dir", "/var/lib/kubelet/plugins_registry", "node: where the kubelet looks for plugins; not registered if empty")
	logging := flag.NewFlagSet("logging", flag.ContinueOnError)
	klog.InitFlags(logging)
	flags.AddGoFlag(logging.Lookup("v"))
	if err := flags.Parse(arguments); err != nil {
		return nil, err
	}
	if o.socket == "" {
		o.socket = filepath.Join("/var/lib/kubelet/plugins", o.driver, "csi.sock")
	}
	return o, o.complete()
}

func (o *options) complete() (err error) {
	switch o.mode {
	case "controller":
		if o.controller == "" {
			return fmt.Errorf("--controller is missing; expected the path of a socket")
		}
		return nil
	case "node":
	default:
		return fmt.Errorf("--mode=%s; expected node or controller", o.mode)
	}
	if o.node == "" {
		return fmt.Errorf("--node is missing, and $NODE_NAME is empty")
	}
	if (o.config == "") == (len(o.poolFlags) == 0) {
		return fmt.Errorf("expected either --config or --pools")
	}
	if o.config != "" {
		o.pools, err = pool.Load(o.config, o.node)
		return err
	}
	for _, s := range o.poolFlags {
		p, err := pool.Parse(s)
		if err != nil {
			return err
		}
		o.pools = append(o.pools, p)
	}
	return nil
}
