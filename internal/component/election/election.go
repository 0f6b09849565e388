// Package election lets one replica of a controller work at a time, and ends its work before the next one begins. Layer L4.
package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentbaseconfig "k8s.io/component-base/config"
)

// StopGrace is how long a stopping program waits for writes that Azure has received. stopAtMost is
// when the program ends regardless. Kubernetes kills a pod after 30 seconds by default.
const (
	StopGrace  = 20 * time.Second
	stopAtMost = StopGrace + 5*time.Second
)

// ErrLost is the error of a leader that could not renew its lock. The program must end: another replica may be the leader.
var ErrLost = errors.New("leader election lost")

// Lock is the lock that replicas compete for.
type Lock struct {
	Kubeconfig *rest.Config
	Timing     componentbaseconfig.LeaderElectionConfiguration // its times, and the namespace of the lock
	Kind, Name string
	Identity   string // of this replica
	Events     resourcelock.EventRecorder
	Watch      *leaderelection.HealthzAdaptor // the health check that is told; nil for none
}

// Identity returns an identity for this replica.
func Identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("identity for leader election: %w", err)
	}
	return host + "_" + string(uuid.NewUUID()), nil
}

// Lead runs work while this replica holds the lock, until ctx ends. An error of work releases the lock.
func (l Lock) Lead(ctx context.Context, work func(context.Context) error) error {
	lock, err := resourcelock.NewFromKubeconfig(l.Kind, l.Timing.ResourceNamespace, l.Name,
		resourcelock.ResourceLockConfig{Identity: l.Identity, EventRecorder: l.Events}, l.Kubeconfig, l.Timing.RenewDeadline.Duration)
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	err = lead(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, Name: l.Name, WatchDog: l.Watch,
		LeaseDuration: l.Timing.LeaseDuration.Duration, RenewDeadline: l.Timing.RenewDeadline.Duration,
		RetryPeriod: l.Timing.RetryPeriod.Duration,
	}, func(leading context.Context) {
		slog.Info("leading", "lock", l.Name, "identity", l.Identity)
		if err := work(leading); err != nil {
			end(err) // releases the lock
			<-leading.Done()
		}
	})
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

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
		return ErrLost
	}
	return nil
}

// Drain waits for finish, at most 25 seconds.
func Drain(finish func()) {
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
