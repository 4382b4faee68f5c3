package release

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"capacityv2.internal/scripts/pack"
)

// imageRegistry is what upstream's images are tagged for.
const imageRegistry = "registry.k8s.io"

// imageSource is what an image is made from.
type imageSource struct {
	program    string
	repository string
	// archInName says that the architecture follows the repository, as in upstream's
	// image tarballs of Kubernetes.
	archInName bool
	files      map[string]string // path in the image to the program there
	entrypoint string
	capability string // file capability of program; empty: none
}

func (s imageSource) reference(p Platform, v Version) string {
	name := s.repository
	if s.archInName {
		name += "-" + p.Arch
	}
	return name + ":" + v.ImageTag()
}

// Image is an image tarball inside a tarball of the release.
type Image struct {
	Reference string `json:"reference"`
	Platform  string `json:"platform"`
	// Config is the digest of the image's configuration, which container
	// runtimes show as the image's ID.
	Config string `json:"config"`
	// Archive is the tarball of the release that holds it, Tarball the file in there.
	Archive string   `json:"archive"`
	Tarball Artefact `json:"tarball"`
}

// netBindService is the file capability cap_net_bind_service=ep, as the kernel
// stores it (version 2, little endian): a kube-apiserver that does not run as
// root may use ports below 1024. Upstream's image has it.
const netBindService = "\x01\x00\x00\x02" + "\x00\x04\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00"

// packImage writes an image into the file out/PROGRAM.tar. bin holds the programs of p.
func packImage(ctx context.Context, src imageSource, p Platform, v Version, bin, out string, date time.Time) (img Image, err error) {
	t := pack.Tree{}
	t.AddBytes("etc/passwd", []byte("root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"))
	t.AddBytes("etc/group", []byte("root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n"))
	for at, program := range src.files {
		if err := t.AddFile(at, filepath.Join(bin, program), pack.Program); err != nil {
			return img, err
		}
		if program == src.program {
			m := t[at]
			m.Capability = src.capability
			t[at] = m
		}
	}
	f, err := os.Create(filepath.Join(out, src.program+".tar"))
	if err != nil {
		return img, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := newSummer(f)
	image := pack.Image{
		Reference: src.reference(p, v), OS: p.OS, Arch: p.Arch, Created: date, CreatedBy: src.program + " " + v.String(), Files: t,
		Config: v1.Config{
			Entrypoint: []string{src.entrypoint},
			Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title":   src.program,
				"org.opencontainers.image.version": v.String(),
			},
		},
	}
	config, err := image.Write(ctx, sum)
	if err != nil {
		return img, err
	}
	return Image{Reference: image.Reference, Platform: p.String(), Config: config, Tarball: sum.artefact(src.program + ".tar")}, nil
}
