// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	for arguments, want := range map[string]string{
		"--mode=controller":  "",
		"--mode=both":        "expected node or controller",
		"--pools=a=1Gi":      "--node is missing",
		"--node=n":           "no pools",
		"--node=n --pools=a": "must be formatted as key=value",
		"--node=n --pools=a=1Gi,b=2Gi --pools=c=1":  "",
		"--node=n --pools=a=1Gi --keep-old=-1s":     "expected no negative duration",
		"--node=n --pools=a=1Gi --backing=branches": "unknown flag",
	} {
		o := &options{}
		err := parse(strings.Fields(arguments), o)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v; expected %q", arguments, err, want)
		}
	}
}
