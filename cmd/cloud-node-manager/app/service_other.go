//go:build !windows

package app

import (
	"context"

	"github.com/spf13/pflag"
)

// platform has no options outside Windows.
type platform struct{}

// addServiceFlag adds nothing: only Windows has a service control manager.
func (platform) addServiceFlag(*pflag.FlagSet) {}

func asService(ctx context.Context, _ *options, run func(context.Context) error) error {
	return run(ctx)
}
