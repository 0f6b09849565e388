// Package live shows lines that change: in place on a terminal, and elsewhere each line when it changes. For every layer.
package live

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
)

// Line is a line of what is shown.
type Line struct {
	Text string
	// Time follows the text. A line of which only the time has changed is the same line.
	Time string
	Mood Mood
}

// Mood is what a line is about, which a terminal shows as its colour.
type Mood int

// The moods of lines.
const (
	Plain Mood = iota
	Good
	Active
	Bad
)

// Frame returns what is shown at a time.
type Frame func(now time.Time) []Line

// Source reads what is to be shown from now on. It is done if nothing will change any more.
type Source func(ctx context.Context) (frame Frame, done bool, err error)

// Screen is where lines are shown.
type Screen struct {
	In  io.Reader
	Out io.Writer
	// Environment looks up a variable: TERM and NO_COLOR count.
	Environment func(name string) string
	// Every is the time between the end of a read and the begin of the next one.
	Every time.Duration
}

// Show shows what a source reads, until it is done or fails, ctx is done, or a key of a terminal ends it: q, Escape or Ctrl-C.
func (s Screen) Show(ctx context.Context, source Source) error {
	if out, is := s.Out.(*os.File); is && term.IsTerminal(int(out.Fd())) && s.Environment("TERM") != "dumb" {
		return s.inPlace(ctx, source)
	}
	return s.inTurn(ctx, source)
}

// inTurn prints each line when it changes.
func (s Screen) inTurn(ctx context.Context, source Source) error {
	var shown []string
	for {
		frame, done, err := source(ctx)
		if err != nil {
			return ended(ctx, err)
		}
		var texts []string
		var fresh strings.Builder
		for _, line := range frame(time.Now()) {
			texts = append(texts, line.Text)
			if !slices.Contains(shown, line.Text) {
				fresh.WriteString(line.whole() + "\n")
			}
		}
		shown = texts
		if _, err := io.WriteString(s.Out, fresh.String()); err != nil || done {
			return err
		}
		timer := time.NewTimer(s.Every)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// ended returns the error of a read, nil if the end of ctx is why it failed.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (l Line) whole() string {
	if l.Time == "" {
		return l.Text
	}
	return l.Text + "  " + l.Time
}
