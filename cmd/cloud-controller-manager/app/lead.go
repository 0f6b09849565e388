package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// stopGrace is for how long writes that Azure was sent are waited for when the
// program is told to stop, and stopAtMost when it ends whatever is under way. A pod is
// killed after 30 seconds where nothing else is said.
const (
	stopGrace  = 20 * time.Second
	stopAtMost = stopGrace + 5*time.Second
)

// errLeadershipLost ends the program: somebody else may be the leader by now.
var errLeadershipLost = errors.New("leader election lost")

// lead does work while the lock is held. When ctx ends the context of work ends, the
// lock is renewed until work has returned, and then given up, so that who takes it
// over meets nobody. A lock that is lost ends lead at once.
func lead(ctx context.Context, election leaderelection.LeaderElectionConfig, work func(context.Context)) error {
	standing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	began, ended := make(chan struct{}), make(chan struct{})
	election.ReleaseOnCancel = true
	election.Callbacks = leaderelection.LeaderCallbacks{
		OnStartedLeading: func(leading context.Context) {
			close(began)
			defer close(ended)
			working, stop := context.WithCancel(leading)
			defer stop()
			defer context.AfterFunc(ctx, stop)()
			if ctx.Err() == nil {
				work(working)
			}
		},
		OnStoppedLeading: func() {},
	}
	elector, err := leaderelection.NewLeaderElector(election)
	if err != nil {
		return err
	}
	if election.WatchDog != nil {
		election.WatchDog.SetLeaderElection(elector)
	}
	defer context.AfterFunc(ctx, func() {
		select {
		case <-began:
			<-ended
		default:
		}
		giveUp()
	})()
	elector.Run(standing)
	if ctx.Err() == nil {
		return errLeadershipLost
	}
	return nil
}

// drain waits until what finish waits for is over, but no longer than the program may
// take.
func drain(finish func()) {
	slog.Info("stopping: no new work is begun, writes to azure that are under way are waited for", "at_most", stopAtMost)
	done := make(chan struct{})
	go func() {
		defer close(done)
		finish()
	}()
	timer := time.NewTimer(stopAtMost)
	defer timer.Stop()
	select {
	case <-done:
		slog.Info("nothing is under way any more")
	case <-timer.C:
		slog.Warn("stopping though work is under way: the next leader goes on from what azure has")
	}
}
