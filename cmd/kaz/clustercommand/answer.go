package clustercommand

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/azure"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/deploy"
	"kaz/internal/cluster/failure"
	"kaz/internal/cluster/lock"
	"kaz/internal/cluster/record"
)

// The exit statuses of kaz cluster besides 0 and 1.
const (
	// invalid: the definition has mistakes, or a check found what stops a deployment.
	invalid cli.ExitCode = 3
	// noRoom: Azure has no room, or a quota is used up.
	noRoom cli.ExitCode = 5
	// deploymentFailed: Azure could not deploy a resource.
	deploymentFailed cli.ExitCode = 6
	// changeFailed: a node or a member stopped a change, or the cluster needs an action.
	changeFailed cli.ExitCode = 7
	// held: another process changes the cluster, or a change or deployment has begun and not ended.
	held cli.ExitCode = 8
)

// format is the output format of a command: text, json or yaml.
func format(command *cobra.Command) string {
	flag := command.Flag("output")
	if flag == nil {
		return "text"
	}
	return flag.Value.String()
}

// show prints the answer of a command: a text for people, or one document of data.
func show(command *cobra.Command, answer any, text func(io.Writer) error) error {
	return cli.PrintAs(command.OutOrStdout(), format(command), answer, text)
}

// say is [show] for a text of one line.
func say(command *cobra.Command, answer any, line string, args ...any) error {
	return show(command, answer, func(out io.Writer) error {
		_, err := fmt.Fprintf(out, line+"\n", args...)
		return err
	})
}

// problem is a mistake of a definition, as data.
type problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Field   string `json:"field"`
	Value   string `json:"value,omitempty"`
	Message string `json:"message"`
}

func problemsOf(all definition.Problems) []problem {
	list := []problem{}
	for _, p := range all {
		list = append(list, problem{p.At.File, p.At.Line, p.Path, p.Value, p.Message})
	}
	return list
}

// mistakes prints the mistakes of a definition, one a line, and returns the exit status 3. It returns other errors.
func mistakes(command *cobra.Command, err error) error {
	problems, ok := errors.AsType[definition.Problems](err)
	if !ok {
		return err
	}
	answer := struct {
		Valid    bool      `json:"valid"`
		Problems []problem `json:"problems"`
	}{false, problemsOf(problems)}
	if err := show(command, answer, func(io.Writer) error {
		_, err := fmt.Fprintln(command.ErrOrStderr(), problems)
		return err
	}); err != nil {
		return err
	}
	return invalid
}

// withStatus gives a command the exit status of its error.
func withStatus(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		err := run(command, args)
		status := statusOf(err)
		if _, printed := errors.AsType[cli.ExitCode](err); printed || status == 0 {
			return err
		}
		if _, err := fmt.Fprintln(command.ErrOrStderr(), "kaz:", err); err != nil {
			return err
		}
		return status
	}
}

// statusOf is the exit status of an error that has one of its own, 0 for others.
func statusOf(err error) cli.ExitCode {
	switch {
	case errors.Is(err, record.ErrOpen), errors.Is(err, lock.ErrHeld), errors.Is(err, deploy.ErrRunning):
		return held
	case full(err):
		return noRoom
	}
	return 0
}

// full reports whether Azure had no room, or a quota was used up.
func full(err error) bool {
	kinds := []azure.Kind{azure.KindOf(err)}
	if failed, ok := errors.AsType[*failure.Error](err); ok {
		for _, f := range failed.Failures {
			kinds = append(kinds, f.Kind())
		}
	}
	return slices.Contains(kinds, azure.Capacity) || slices.Contains(kinds, azure.Quota)
}
