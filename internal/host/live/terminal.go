package live

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// inPlace shows the lines in place of those before.
func (s Screen) inPlace(ctx context.Context, source Source) error {
	reads, stop := context.WithCancel(ctx) // a key ends the read that is under way
	defer stop()
	read := func() tea.Msg {
		frame, done, err := source(reads)
		if err != nil {
			err = ended(reads, err)
			done = true
		}
		return wasRead{frame, done, err}
	}
	program := tea.NewProgram(&view{screen: s, read: read}, tea.WithInput(s.In), tea.WithOutput(s.Out), tea.WithoutSignalHandler())
	defer context.AfterFunc(ctx, program.Quit)() // not killed: its reader is to leave the terminal before Show returns
	last, err := program.Run()
	if ctx.Err() != nil {
		return nil
	}
	if v, is := last.(*view); is && err == nil {
		err = v.err
	}
	return err
}

// view is what a terminal shows.
type view struct {
	screen        Screen
	read          tea.Cmd
	frame         Frame // nil before the first read
	err           error
	width, height int
}

// The messages of a view: what was read, that it is time to read, and that a second has passed.
type (
	wasRead struct {
		frame Frame
		done  bool
		err   error
	}
	readAgain struct{}
	second    struct{}
)

// Init implements [tea.Model].
func (v *view) Init() tea.Cmd { return tea.Batch(v.read, nextSecond()) }

func nextSecond() tea.Cmd {
	return tea.Tick(time.Second, func(time.Time) tea.Msg { return second{} })
}

// Update implements [tea.Model].
func (v *view) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch m := message.(type) {
	case wasRead:
		if v.err = m.err; m.frame != nil {
			v.frame = m.frame
		}
		if m.done {
			return v, tea.Quit
		}
		return v, tea.Tick(v.screen.Every, func(time.Time) tea.Msg { return readAgain{} })
	case readAgain:
		return v, v.read
	case second:
		return v, nextSecond()
	case tea.WindowSizeMsg:
		v.width, v.height = m.Width, m.Height
	case tea.KeyPressMsg:
		switch m.String() {
		case "q", "esc", "ctrl+c":
			return v, tea.Quit
		}
	}
	return v, nil
}

// View implements [tea.Model].
func (v *view) View() tea.View {
	if v.frame == nil {
		return tea.NewView("")
	}
	lines := v.frame(time.Now())
	if v.height > 1 && len(lines) > v.height-1 {
		lines = append(lines[:v.height-2:v.height-2], Line{Text: "..."})
	}
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(v.painted(line) + "\n")
	}
	return tea.NewView(text.String())
}

// painted is a line in the colour of its mood, as long as the terminal is wide.
func (v *view) painted(line Line) string {
	text := []rune(line.whole())
	if v.width > 0 && len(text) > v.width {
		text = text[:v.width]
	}
	const green, blue, red = "\x1b[32m", "\x1b[36m", "\x1b[31m"
	colour := map[Mood]string{Good: green, Active: blue, Bad: red}[line.Mood]
	if colour == "" || v.screen.Environment("NO_COLOR") != "" {
		return string(text)
	}
	return colour + string(text) + "\x1b[m"
}
