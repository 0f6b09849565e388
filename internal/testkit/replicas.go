package testkit

import (
	"context"
	"testing"
	"time"
)

// Replicas are controllers that take turns. They repeat each request until it succeeds, as sidecars do.
type Replicas[C any] struct {
	// Begin starts a controller, and End ends one. End may be nil.
	Begin func() C
	End   func(C)
	// Crashed receives a value when the controller that handles a request crashes.
	Crashed chan struct{}
	// After runs after each request. It may be nil.
	After func()

	controllers []C
	turn        int
}

// atOnce is the number of controllers.
const atOnce = 2

// Until repeats a request until it succeeds. When a controller crashes, its requests end and another one takes its place.
func (r *Replicas[C]) Until(t *testing.T, what string, request func(context.Context, C) error) {
	t.Helper()
	for len(r.controllers) < atOnce {
		r.controllers = append(r.controllers, r.Begin())
	}
	var err error
	for range 12 {
		at := r.turn % atOnce
		r.turn++
		if err = r.once(t.Context(), at, request); r.After != nil {
			r.After()
		}
		if err == nil {
			return
		}
		<-time.After(time.Second)
	}
	t.Errorf("%s: %v", what, err)
}

// once sends a request to one controller.
func (r *Replicas[C]) once(ctx context.Context, at int, request func(context.Context, C) error) error {
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-r.Crashed:
			kill()
			r.end(r.controllers[at])
			r.controllers[at] = r.Begin()
		case <-ended:
		}
	}()
	err := request(ctx, r.controllers[at])
	close(ended)
	<-watched
	return err
}

func (r *Replicas[C]) end(c C) {
	if r.End != nil {
		r.End(c)
	}
}

// Close ends all controllers.
func (r *Replicas[C]) Close() {
	for _, c := range r.controllers {
		r.end(c)
	}
}
