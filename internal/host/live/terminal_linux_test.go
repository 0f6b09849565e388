package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// terminal is a terminal of this machine with 40 columns and 6 lines.
type terminal struct {
	t     *testing.T
	user  *os.File // what a person sees and types
	file  *os.File // what a program has
	shown chan []byte
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals here: %v", err)
	}
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(user.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 6, Col: 40})
	}
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t, user, file, make(chan []byte)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(x.shown)
		for {
			some := make([]byte, 4096)
			n, err := user.Read(some)
			if err != nil {
				return
			}
			x.shown <- some[:n]
		}
	}()
	t.Cleanup(func() {
		go func() { _, _ = io.Copy(io.Discard, channel(x.shown)) }()
		file.Close()
		<-ended
		user.Close()
	})
	return x
}

// channel reads what comes from a channel.
type channel chan []byte

func (c channel) Read(p []byte) (int, error) {
	some, more := <-c
	if !more {
		return 0, io.EOF
	}
	return copy(p, some), nil
}

// until reads what is shown until it has a text.
func (x *terminal) until(text string) string {
	x.t.Helper()
	var all bytes.Buffer
	late := time.After(20 * time.Second)
	for !strings.Contains(all.String(), text) {
		select {
		case some := <-x.shown:
			all.Write(some)
		case <-late:
			x.t.Fatalf("%q is not shown but %q", text, all.String())
		}
	}
	return all.String()
}

// TestInPlace checks what a terminal shows: colours, unless NO_COLOR is set, and no more than fits; and that q, Ctrl-C, the end of the
// source and that of the context end it.
func TestInPlace(t *testing.T) {
	lines := []Line{{Text: "green", Mood: Good}, {Text: strings.Repeat("long ", 10)}, {Text: "3"}, {Text: "4"}, {Text: "5"}, {Text: "6"}, {Text: "seven"}}
	for name, c := range map[string]struct {
		variable, keys string
		done           bool
		err            error
	}{
		"q": {keys: "q"}, "Ctrl-C": {keys: "\x03"}, "done": {done: true}, "context": {}, "no colours": {variable: "NO_COLOR", keys: "q"},
		"error": {err: errors.New("refused")},
	} {
		t.Run(name, func(t *testing.T) {
			x := openTerminal(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			screen := Screen{In: x.file, Out: x.file, Every: time.Millisecond, Environment: func(n string) string {
				if n == c.variable {
					return "1"
				}
				return ""
			}}
			ended := make(chan error, 1)
			shown := make(chan struct{})
			go func() {
				ended <- screen.Show(ctx, func(context.Context) (Frame, bool, error) {
					select {
					case <-shown:
						return func(time.Time) []Line { return lines }, c.done, c.err
					default:
						return func(time.Time) []Line { return lines }, false, nil
					}
				})
			}()
			text := x.until("...")
			if coloured := strings.Contains(text, "\x1b[32m"); coloured != (c.variable == "") {
				t.Errorf("coloured %t: %q", coloured, text)
			}
			if !strings.Contains(text, "green") || strings.Contains(text, "seven") || strings.Contains(text, strings.Repeat("long ", 9)) {
				t.Errorf("shown %q", text)
			}
			close(shown)
			if c.keys != "" {
				if _, err := x.user.WriteString(c.keys); err != nil {
					t.Fatal(err)
				}
			} else if !c.done && c.err == nil {
				cancel()
			}
			for {
				select {
				case <-x.shown:
				case err := <-ended:
					if !errors.Is(err, c.err) {
						t.Errorf("%v, want %v", err, c.err)
					}
					return
				}
			}
		})
	}
}
