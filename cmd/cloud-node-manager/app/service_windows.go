package app

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"golang.org/x/sys/windows/svc"
)

// addServiceFlag adds the flag with which the service control manager of Windows
// starts the program.
func (o *options) addServiceFlag(set *pflag.FlagSet) {
	set.BoolVar(&o.asService, "windows-service", o.asService, "Run as a service of Windows, which the service control manager starts and stops.")
}

// asService runs under the service control manager where that was asked for.
func asService(ctx context.Context, o *options, run func(context.Context) error) error {
	if !o.asService {
		return run(ctx)
	}
	s := &service{ctx: ctx, run: run}
	if err := svc.Run(name, s); err != nil {
		return fmt.Errorf("--windows-service: %w", err)
	}
	return s.err
}

// service tells the service control manager how the program is.
type service struct {
	ctx context.Context //nolint:containedctx // the control manager's call passes none
	run func(context.Context) error
	err error
}

// Execute implements [svc.Handler].
func (s *service) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	ctx, stop := context.WithCancel(s.ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	const accepts = svc.AcceptStop | svc.AcceptShutdown
	now := svc.Status{State: svc.Running, Accepts: accepts}
	status <- now
	for {
		select {
		case s.err = <-ended:
			status <- svc.Status{State: svc.StopPending}
			if s.err != nil {
				return true, 1
			}
			return false, 0
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				status <- now
			case svc.Stop, svc.Shutdown:
				now = svc.Status{State: svc.StopPending}
				status <- now
				stop()
			}
		}
	}
}
