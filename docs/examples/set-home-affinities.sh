#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Gives released volumes the nodes with their data as their node affinity, before the feature is turned off:
# docs/how-to/drain.md. It names nodes by the topology keys of the driver, which are in CSINode. With other labels, such
# as kubernetes.io/hostname, the driver might not recognise its own node.
set -u

# shellcheck disable=SC2016  # the variables are those of the templates
kubectl get pv -o go-template='{{range $pv := .items}}{{range $key, $homes := .metadata.annotations}}{{if eq $key "pv.kubernetes.io/home-nodes"}}{{$pv.metadata.name}} {{$pv.spec.csi.driver}} {{$homes}}{{"\n"}}{{end}}{{end}}{{end}}' |
while read -r pv driver homes; do
  terms=
  for home in $(echo "$homes" | tr , ' '); do
    node=${home%%=*} uid=${home#*=}
    labels=$(kubectl get "node/$node" "csinode/$node" --ignore-not-found -o go-template='
      {{- $node := index .items 0}}{{if and (eq (len .items) 2) (eq $node.metadata.uid "'"$uid"'")}}
      {{- range (index .items 1).spec.drivers}}{{if eq .name "'"$driver"'"}}
      {{- range $i, $key := .topologyKeys}}{{if $i}}, {{end}}{"key": "{{$key}}", "operator": "In", "values": ["{{index $node.metadata.labels $key}}"]}{{end}}
      {{- end}}{{end}}{{end}}') || continue
    [ -z "$labels" ] || terms="$terms${terms:+, }{\"matchExpressions\": [$labels]}"
  done
  if [ -z "$terms" ]; then
    echo "$pv stays released: its driver is on no node with its data"
    continue
  fi
  kubectl patch pv "$pv" --type=merge --patch '{"metadata": {"annotations": {"pv.kubernetes.io/home-nodes": null}},
    "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": ['"$terms"']}}}}'
done
