package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// stopGrace is how long a stopping program waits for writes that Azure has received. stopAtMost is
// when the program ends regardless. Kubernetes kills a pod after 30 seconds by default.
const (
	stopGrace  = 20 * time.Second
	stopAtMost = stopGrace + 5*time.Second
)

// errLeadershipLost ends the program, because another instance may be the leader.
var errLeadershipLost = errors.New("leader election lost")

// lead runs work while it holds the lock. When ctx ends, the context of work ends too. The lock is
// renewed until work has returned and is then released, so the next leader never works at the same
// time. If the lock is lost, lead returns at once.
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

// drain waits for finish, at most stopAtMost.
func drain(finish func()) {
	slog.Info("stopping: waiting for azure writes in flight, starting no new work", "at_most", stopAtMost)
	done := make(chan struct{})
	go func() {
		defer close(done)
		finish()
	}()
	timer := time.NewTimer(stopAtMost)
	defer timer.Stop()
	select {
	case <-done:
		slog.Info("all work has finished")
	case <-timer.C:
		slog.Warn("stopping with work in flight: the next leader continues from the state of azure")
	}
}
