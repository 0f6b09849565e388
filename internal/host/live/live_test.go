package live

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// reads is a source of frames, the last of which is done.
func reads(frames ...[]Line) Source {
	i := 0
	return func(context.Context) (Frame, bool, error) {
		lines := frames[i]
		i++
		return func(time.Time) []Line { return lines }, i == len(frames), nil
	}
}

// TestInTurn checks that a line is printed when it changes, not when only its time changes, and without colours.
func TestInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		screen := Screen{Out: &out, Environment: func(string) string { return "" }, Every: time.Hour}
		began := time.Now()
		err := screen.Show(t.Context(), reads(
			[]Line{{Text: "deploying", Time: "1s", Mood: Active}, {Text: "a creating"}},
			[]Line{{Text: "deploying", Time: "2s"}, {Text: "a done", Mood: Good}, {Text: "b failed", Mood: Bad}},
			[]Line{{Text: "deployed"}, {Text: "a done"}, {Text: "b failed"}}))
		if want := "deploying  1s\na creating\na done\nb failed\ndeployed\n"; err != nil || out.String() != want {
			t.Errorf("%v, printed %q, want %q", err, out.String(), want)
		}
		if took := time.Since(began); took != 2*time.Hour {
			t.Errorf("it took %s", took)
		}
	})
}

// TestInTurnEnds checks that the end of the context is no error, and that one of the source or of the output is.
func TestInTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		screen := Screen{Out: &bytes.Buffer{}, Every: time.Hour}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := screen.Show(ctx, reads(nil, nil)); err != nil {
			t.Errorf("the end of its context: %v", err)
		}
		refused := errors.New("refused")
		fails := func(ctx context.Context) (Frame, bool, error) { return nil, false, refused }
		if err := screen.Show(ctx, fails); err != nil {
			t.Errorf("a read after the end of its context: %v", err)
		}
		if err := screen.Show(t.Context(), fails); !errors.Is(err, refused) {
			t.Errorf("%v, want %v", err, refused)
		}
		screen.Out = full{}
		if err := screen.Show(t.Context(), reads([]Line{{Text: "x"}}, nil)); !errors.Is(err, errFull) {
			t.Errorf("%v, want %v", err, errFull)
		}
	})
}

var errFull = errors.New("full")

// full is an output that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
