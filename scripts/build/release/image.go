// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"path/filepath"
	"runtime"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"capacityv2.internal/scripts/ground/files"
)

// imageRegistry is what upstream's images are tagged for.
const imageRegistry = "registry.k8s.io"

// imagesName is a list of the images with their IDs, to compare with what a runtime has loaded.
const imagesName = "IMAGES"

// imageSource is what an image is made from.
type imageSource struct {
	program    string
	repository string
	files      map[string]string // path in the image to the program there
	entrypoint string
	capability string // file capability of program; empty: none
}

// netBindService is the file capability cap_net_bind_service=ep, as the kernel
// stores it (version 2, little endian): a kube-apiserver that does not run as
// root may use ports below 1024. Upstream's image has it.
const netBindService = "\x01\x00\x00\x02" + "\x00\x04\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// passwd and group name the users of upstream's base images.
const (
	passwd = "root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"
	group  = "root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"
)

// pack writes an image into a file, with programs of bin. It returns its name and its ID, which is
// the digest of its configuration.
func (i imageSource) pack(ctx context.Context, v Version, bin, file string, date time.Time) (reference, digest string, err error) {
	t := files.Tree{}
	for at, program := range i.files {
		if err := t.AddFile(at, filepath.Join(bin, program), files.Program); err != nil {
			return "", "", err
		}
		if program == i.program {
			m := t[at]
			m.Capability = i.capability
			t[at] = m
		}
	}
	t.AddBytes("etc/passwd", []byte(passwd))
	t.AddBytes("etc/group", []byte(group))
	image := files.Image{
		Reference: i.repository + ":" + v.ImageTag(), OS: "linux", Arch: runtime.GOARCH, Created: date, CreatedBy: i.program + " " + v.String(), Files: t,
		Config: v1.Config{
			Entrypoint: []string{i.entrypoint},
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title":   i.program,
				"org.opencontainers.image.version": v.String(),
			},
		},
	}
	digest, err = image.WriteFile(ctx, file)
	return image.Reference, digest, err
}
