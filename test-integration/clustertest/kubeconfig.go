// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// Kubeconfig writes one for programs that a test starts, and returns its path. They act as
// a user, or as the client itself if that is "".
func Kubeconfig(tCtx ktesting.TContext, config *rest.Config, user string) string {
	tCtx.Helper()
	const name = "test"
	path := filepath.Join(tCtx.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {
			Server: config.Host, TLSServerName: config.ServerName,
			CertificateAuthority: config.CAFile, CertificateAuthorityData: config.CAData, InsecureSkipTLSVerify: config.Insecure,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: config.BearerToken, Impersonate: user}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
	if err != nil {
		tCtx.Fatalf("write the kubeconfig: %v", err)
	}
	return path
}
