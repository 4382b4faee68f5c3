package files

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// ReadYAML reads a file of ours into a value. A field that the value does not have is an error.
func ReadYAML(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(content, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
