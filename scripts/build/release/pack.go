// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/klauspost/pgzip"

	"capacityv2.internal/scripts/ground/files"
)

// writeTarGz writes t into a file.
func writeTarGz(ctx context.Context, t files.Tree, path string, date time.Time) error {
	return writeGz(path, func(w io.Writer) error { return t.WriteTar(ctx, w, date) })
}

// gzip blocks: a fixed size gives the same bytes for any number of processors.
const gzipBlock = 1 << 20

// gzipLevel 4 takes half of the time of gzip's usual 6, for 5 % more bytes.
const gzipLevel = 4

// writeGz compresses what f writes into a file. The gzip header has no name and no time.
func writeGz(path string, f func(io.Writer) error) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	z, err := pgzip.NewWriterLevel(file, gzipLevel)
	if err != nil {
		return err
	}
	if err := z.SetConcurrency(gzipBlock, runtime.GOMAXPROCS(0)); err != nil {
		return err
	}
	return errors.Join(f(z), z.Close())
}

// sum returns the SHA-256 of a file in hex.
func sum(path string) (string, error) {
	h := sha256.New()
	err := files.Copy(h, path)
	return hex.EncodeToString(h.Sum(nil)), err
}
