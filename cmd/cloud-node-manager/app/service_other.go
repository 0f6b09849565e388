//go:build !windows

package app

import (
	"context"

	"github.com/spf13/pflag"
)

// platform has no options of its own here.
type platform struct{}

// addServiceFlag adds nothing: only Windows starts programs as services of its own
// kind.
func (platform) addServiceFlag(*pflag.FlagSet) {}

func asService(ctx context.Context, _ *options, run func(context.Context) error) error {
	return run(ctx)
}
