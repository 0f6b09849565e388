package flagerror

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestExplain checks that wrong values are answered with what is allowed, and not with the words of a library.
func TestExplain(t *testing.T) {
	for args, want := range map[string]string{
		"--nodes=three":   `--nodes "three": want a whole number`,
		"--seed=-1":       `--seed "-1": want a whole number that is not negative`,
		"--timeout=5":     `--timeout "5": want a duration such as 30s, 5m or 1h`,
		"--detach=maybe":  `--detach "maybe": want true or false`,
		"--no-such=1":     "unknown flag: --no-such",
		"--nodes":         "flag needs an argument: --nodes",
		"--share=a lot":   `--share "a lot": want a number such as 0.5`,
		"--list=1,2,many": `--list "1,2,many": want whole numbers, separated by commas`,
	} {
		command := &cobra.Command{Use: "test", SilenceErrors: true, SilenceUsage: true, Run: func(*cobra.Command, []string) {}}
		f := command.Flags()
		f.Int("nodes", 0, "")
		f.Uint64("seed", 0, "")
		f.Duration("timeout", time.Second, "")
		f.Bool("detach", false, "")
		f.Float64("share", 0, "")
		f.IntSlice("list", nil, "")
		command.SetFlagErrorFunc(Explain)
		command.SetArgs([]string{args})
		if err := command.Execute(); err == nil || err.Error() != want || strings.Contains(err.Error(), "strconv") {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
