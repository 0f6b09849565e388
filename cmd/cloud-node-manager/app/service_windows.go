package app

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"golang.org/x/sys/windows/svc"
)

// platform holds the options that only Windows has.
type platform struct{ asService bool }

// addServiceFlag adds the flag with which the service control manager starts the program.
func (p *platform) addServiceFlag(set *pflag.FlagSet) {
	set.BoolVar(&p.asService, "windows-service", p.asService,
		"Run as a service of Windows, which the service control manager starts and stops.")
}

// asService runs the program under the service control manager if the flag is set.
func asService(ctx context.Context, o *options, run func(context.Context) error) error {
	if !o.asService {
		return run(ctx)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &service{run: func() error { return run(ctx) }, stop: stop}
	if err := svc.Run(name, s); err != nil {
		return fmt.Errorf("--windows-service: %w", err)
	}
	return s.err
}

// service reports the program's state to the service control manager.
type service struct {
	run  func() error
	stop context.CancelFunc
	err  error // result of run, valid once it has ended
}

// Execute implements [svc.Handler].
func (s *service) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	ended := make(chan error, 1)
	go func() { ended <- s.run() }()
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
				s.stop()
			}
		}
	}
}
