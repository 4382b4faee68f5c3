//go:build record

package main

import (
	"os"

	"capacityv2.internal/test-e2e/driver/record"
)

func init() {
	w := record.Writer{Writer: os.Stdout}
	recordRoom, interceptors = w.Room, append(interceptors, w.Call)
}
