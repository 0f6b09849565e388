package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"kaz/internal/localcluster/boot"
	"kaz/internal/localcluster/machine"
)

// machineCommand returns the hidden command by which `kaz local` runs machines: "run" outside, "boot" inside; "start" and
// "enter" for machines that boot from an image.
func machineCommand() *cobra.Command {
	command := &cobra.Command{Use: "machine", Hidden: true}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	with := func(use string, do func(context.Context, string, machine.Spec) error) {
		command.AddCommand(&cobra.Command{Use: use + " FILE", Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
			s, err := machine.Read(args[0])
			if err != nil {
				return err
			}
			return do(c.Context(), args[0], s)
		}})
	}
	with("run", func(ctx context.Context, file string, s machine.Spec) error {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		return machine.Run(ctx, s, program, "machine", "boot", file)
	})
	with("boot", func(ctx context.Context, _ string, s machine.Spec) error { return machine.Boot(ctx, s, log) })
	command.AddCommand(&cobra.Command{Use: "start FILE", Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		s, err := boot.Read(args[0])
		if err != nil {
			return err
		}
		return boot.Run(c.Context(), s, program, "machine", "enter", args[0])
	}}, &cobra.Command{Use: "enter FILE CONSOLE", Args: cobra.ExactArgs(2), RunE: func(_ *cobra.Command, args []string) error {
		s, err := boot.Read(args[0])
		if err != nil {
			return err
		}
		return boot.Enter(s, args[1])
	}})
	return command
}
