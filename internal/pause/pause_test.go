package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/pause"
)

// TestFor checks how long it waits, and that the end of the context ends it.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := pause.For(t.Context(), time.Minute); err != nil || time.Since(start) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := pause.For(ctx, time.Minute); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute+time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := pause.For(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its end: %v", err)
		}
	})
}
