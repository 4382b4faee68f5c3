// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"path"
	"slices"
	"strings"

	"capacityv2.internal/scripts/ground/run"
)

// Images returns the references under which the test program asks for images, by the name of
// their program, such as csi-provisioner. It has more than we build.
func Images(ctx context.Context, program string, log io.Writer) (map[string][]string, error) {
	list, err := run.Cmd{Name: program, Args: []string{"--list-images"}, Log: log}.Output(ctx)
	if err != nil {
		return nil, err
	}
	images := map[string][]string{}
	for _, reference := range slices.Sorted(strings.FieldsSeq(string(list))) {
		name, _, _ := strings.Cut(path.Base(reference), ":")
		images[name] = append(images[name], reference)
	}
	return images, nil
}
