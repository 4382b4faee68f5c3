// Pins the base of patches/external-provisioner. go.sum vouches for every byte; nothing
// here is compiled.
module capacityv2.internal/scripts/pins/external-provisioner

go 1.26.0

require github.com/kubernetes-csi/external-provisioner/v6 v6.4.0
