// Pins the base of patches/csi-spec. go.sum vouches for every byte; nothing here is
// compiled.
module capacityv2.internal/scripts/pins/csi-spec

go 1.26.0

require github.com/container-storage-interface/spec v1.13.0
