// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// StartComponent starts a kube-scheduler or a kube-controller-manager, and waits until it serves. The
// flags are added to those that it needs for that. address is where it serves /metrics and /readyz, for [Get].
func StartComponent(tCtx ktesting.TContext, program, kubeconfig string, flags ...string) (process *Process, address string) {
	tCtx.Helper()
	port, err := FreePort()
	tCtx.ExpectNoError(err, "port of "+program)
	process = StartProcess(tCtx, program, nil, append(flags, "--bind-address=127.0.0.1", "--secure-port="+port, "--cert-dir="+tCtx.TempDir(),
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--authorization-always-allow-paths=/healthz,/readyz,/metrics")...)
	address = "https://127.0.0.1:" + port
	var last error
	err = wait.PollUntilContextTimeout(tCtx, 50*time.Millisecond, programStartTimeout, true, func(ctx context.Context) (bool, error) {
		if err, ended := process.Ended(); ended {
			return false, fmt.Errorf("it has ended: %v", err)
		}
		_, last = Get(ctx, address+"/healthz")
		return last == nil, nil
	})
	if err != nil {
		tCtx.Fatalf("%s does not serve: %v; last: %v", program, err, last)
	}
	return process, address
}

// insecure does not check certificates, which programs make at their start.
var insecure = &http.Client{Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}

// Get returns what a program on this machine serves. Anything but 200 is an error.
func Get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := insecure.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return body, err
}
