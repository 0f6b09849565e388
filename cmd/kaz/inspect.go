package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"kaz/cmd/kaz/cli"
	"kaz/internal/localcluster"
)

func shellCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "ssh NODE [-- COMMAND [ARGUMENT...]]",
		Short: "Run a shell or a command in the machine of a real node",
		Example: `  kaz local ssh nodes0-000000
  kaz local ssh nodes0-000000 -- ip route`,
		Args: cli.Wants(1, math.MaxInt, "a real node, such as nodes0-000000"),
		RunE: func(command *cobra.Command, args []string) error {
			shell, err := localcluster.Shell(command.Context(), dir, args[0], args[1:]...)
			if err != nil {
				return err
			}
			return runProgram(command, shell)
		},
	}
	cli.DirFlag(command, &dir)
	return command
}

// runProgram runs a program with the input and output of this command, and returns its exit status.
func runProgram(command *cobra.Command, program *exec.Cmd) error {
	program.Stdin, program.Stdout, program.Stderr = command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr()
	program.Env = os.Environ()
	err := program.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() > 0 {
		return cli.ExitCode(exit.ExitCode())
	}
	return err
}

func logsCommand() *cobra.Command {
	var dir, program string
	var follow bool
	var lines int
	command := &cobra.Command{
		Use:   "logs NODE|COMPONENT",
		Short: "Show the logs of a component, or of the programs of a real node",
		Example: `  kaz local logs cloud-controller-manager --follow
  kaz local logs nodes0-000000 --program kubelet`,
		Args: cli.Wants(1, 1, "one component or real node, such as cloud-controller-manager or nodes0-000000"),
		RunE: func(command *cobra.Command, args []string) error {
			files, err := localcluster.Logs(dir, args[0])
			if err != nil {
				return err
			}
			if files, err = only(files, program); err != nil {
				return err
			}
			arguments := append([]string{fmt.Sprintf("--lines=%d", lines)}, files...)
			if follow {
				arguments = append([]string{"--follow=name", "--retry"}, arguments...)
			}
			return runProgram(command, exec.CommandContext(command.Context(), "tail", arguments...))
		},
	}
	f := command.Flags()
	cli.DirFlag(command, &dir)
	f.StringVar(&program, "program", "",
		"show only the log of this program of a node: containerd, kubelet, kube-proxy or cloud-node-manager")
	f.BoolVarP(&follow, "follow", "f", false, "show new lines until Ctrl-C")
	f.IntVar(&lines, "tail", 50, "number of lines of each log")
	return command
}

// only returns the log of a program, all logs without a program.
func only(files []string, program string) ([]string, error) {
	if program == "" {
		return files, nil
	}
	var known []string
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".log")
		if name == program {
			return []string{file}, nil
		}
		known = append(known, name)
	}
	return nil, fmt.Errorf("--program %s: want one of %s", program, strings.Join(known, ", "))
}
