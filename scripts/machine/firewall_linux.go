package machine

import (
	"errors"
	"os/exec"
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"
)

// kubePrefix begins the names of the chains that kubelet and kube-proxy make.
const kubePrefix = "KUBE-"

// HasKubernetesRules reports whether the packet filter of the network that we are in
// has a chain of Kubernetes.
func HasKubernetesRules() (bool, error) {
	found := false
	err := eachTable(func(_ *iptables.IPTables, _ string, chains []string) error {
		found = found || slices.ContainsFunc(chains, isKube)
		return nil
	})
	return found, err
}

// RemoveKubernetesRules removes every chain of Kubernetes, and the rules that lead
// there: a chain in use cannot be removed.
func RemoveKubernetesRules() error {
	return eachTable(func(filter *iptables.IPTables, table string, chains []string) error {
		var errs []error
		for _, chain := range chains {
			if isKube(chain) {
				errs = append(errs, filter.ClearChain(table, chain))
				continue
			}
			lines, err := filter.List(table, chain)
			errs = append(errs, err)
			// The first line is the chain, the others are its rules. Removing one
			// changes the numbers of those after it.
			for number := len(lines) - 1; number > 0; number-- {
				if strings.Contains(lines[number], " -j "+kubePrefix) {
					errs = append(errs, filter.DeleteById(table, chain, number))
				}
			}
		}
		for _, chain := range chains {
			if isKube(chain) {
				errs = append(errs, filter.DeleteChain(table, chain))
			}
		}
		return errors.Join(errs...)
	})
}

func isKube(chain string) bool { return strings.HasPrefix(chain, kubePrefix) }

// eachTable calls f for each table of both protocols that this machine has.
func eachTable(f func(filter *iptables.IPTables, table string, chains []string) error) error {
	var errs []error
	for _, protocol := range []iptables.Protocol{iptables.ProtocolIPv4, iptables.ProtocolIPv6} {
		filter, err := iptables.NewWithProtocol(protocol)
		if errors.Is(err, exec.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		for _, table := range []string{"filter", "nat", "mangle", "raw"} {
			chains, err := filter.ListChains(table)
			if failed := (*iptables.Error)(nil); errors.As(err, &failed) && failed.ExitStatus() == noTable {
				continue
			}
			if err != nil {
				return err
			}
			errs = append(errs, f(filter, table, chains))
		}
	}
	return errors.Join(errs...)
}

// noTable is how iptables exits where the kernel does not have a table.
const noTable = 3
