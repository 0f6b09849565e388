package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"kaz/internal/localazure/plane/fabric/wiring"
)

// Sweep removes what an instance left behind: its namespaces, and the link with its routes in the namespace from which
// its public addresses are reached.
func Sweep(ctx context.Context, instance, outside string) error {
	var problems []error
	prefix := wiring.Prefix(instance)
	if err := deleteLinks(ctx, outside, func(name string) bool { return name == prefix }); err != nil {
		problems = append(problems, err)
	}
	entries, err := os.ReadDir(Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		problems = append(problems, err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix+"-") {
			continue
		}
		// A deleted link is gone at once, a link of a deleted namespace some time later. A file in the directory may be
		// no namespace any more.
		_ = deleteLinks(ctx, e.Name(), func(name string) bool { return name != "lo" })
		if err := Remove(e.Name()); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("clean up the network of %s: %w", prefix, err)
	}
	return nil
}

// deleteLinks deletes interfaces in a namespace.
func deleteLinks(ctx context.Context, namespace string, which func(name string) bool) error {
	var lines []string
	err := Do(namespace, func() error {
		all, err := net.Interfaces()
		for _, i := range all {
			if which(i.Name) {
				lines = append(lines, "link del dev "+i.Name)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = batch(ctx, namespace, lines)
	return err
}
