// Package prebuilt makes and finds the folder that spares a local cluster the go command: the programs of the control plane and of
// nodes, the program of the example's images, and definitions of other projects' kinds. An archive of a release has it beside kaz.
// Layer L4.
package prebuilt

import (
	"context"
	"fmt"
	"path/filepath"

	"kaz/internal/localcluster/controlplane"
	"kaz/internal/localcluster/image"
)

// Beside returns the folder of a kaz executable. It need not exist.
func Beside(program string) string { return filepath.Join(filepath.Dir(program), "prebuilt") }

// Options describe a folder to make.
type Options struct {
	Dir string
	// Arch is the processor architecture of the machines that use the folder, such as arm64; that of this machine if empty.
	Arch     string
	Progress func(controlplane.Step)
}

// Make fills the folder with all that local clusters with simulated and with real nodes need. The same version of Go makes the same
// bytes on each machine. Machines that boot are left out: their images need a package repository in any case.
func Make(ctx context.Context, o Options) error {
	if _, err := controlplane.Build(ctx, controlplane.BuildOptions{
		CacheDir: o.Dir, Arch: o.Arch, Trimmed: true, Without: controlplane.MachinePrograms(), Progress: o.Progress,
	}); err != nil {
		return err
	}
	if _, err := image.Box(ctx, image.Options{Dir: o.Dir, Arch: o.Arch, Trimmed: true}); err != nil {
		return fmt.Errorf("program of images: %w", err)
	}
	return controlplane.KeepDefinitions(ctx, controlplane.BuildOptions{CacheDir: o.Dir})
}
