package realnodes

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	compute "kaz/internal/emulator/behaviour/compute/vm"
	"kaz/internal/local/inventory"
	vm "kaz/internal/local/machine"
)

// scripts runs the scripts of extensions on machines, as the guest agent does.
type scripts struct {
	nodes   *Nodes
	running map[string]bool // by machine and extension
	ended   chan string
}

// runScripts runs the scripts of extensions until ctx is done.
func (n *Nodes) runScripts(ctx context.Context) error {
	s := scripts{nodes: n, running: map[string]bool{}, ended: make(chan string)}
	changed := inventory.Changes(ctx, n.config.Azure.Emulator())
	var tasks errgroup.Group
	defer func() { _ = tasks.Wait() }() // each script has recorded its result
	for {
		select {
		case <-ctx.Done():
			return nil
		case key := <-s.ended:
			delete(s.running, key)
		case <-changed:
		}
		machines, err := inventory.List(ctx, n.config.Azure.Emulator())
		if err != nil {
			return nil // ctx is done
		}
		for _, m := range machines {
			s.begin(ctx, &tasks, m)
		}
	}
}

// begin begins the scripts of a machine that do not run yet.
func (s scripts) begin(ctx context.Context, tasks *errgroup.Group, m inventory.Machine) {
	var wanted []compute.Script
	s.nodes.config.Azure.Look(func(w behaviour.World) {
		if doc, ok := w.Get(m.ID); ok {
			wanted = compute.Scripts(w, m.ID, doc)
		}
	})
	for _, script := range wanted {
		key := m.ID.Key() + " " + script.Extension
		if s.running[key] {
			continue
		}
		s.running[key] = true
		tasks.Go(func() error {
			s.run(ctx, m, script)
			select {
			case s.ended <- key:
			case <-ctx.Done():
			}
			return nil
		})
	}
}

// run runs a script and records its result. A script that ended with its machine runs again.
func (s scripts) run(ctx context.Context, m inventory.Machine, script compute.Script) {
	result, err := runScript(ctx, filepath.Join(DisksDir(s.nodes.config.Dir), m.Name), script.Command)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.nodes.config.Log.Warn("script of an extension did not end", "machine", m.Name, "extension", script.Extension, "error", err)
		select {
		case <-time.After(retryDelay):
		case <-ctx.Done():
		}
		return
	}
	s.nodes.config.Log.Info("script of an extension ended", "machine", m.Name, "extension", script.Extension, "status", result.Status)
	s.record(m.ID, script.Extension, result)
}

func (s scripts) record(machine azure.ID, extension string, result compute.Result) {
	if err := s.nodes.config.Azure.Emulator().Do(func(w behaviour.World) error {
		w.Edit(machine, func(doc behaviour.Object) { compute.SetResult(doc, extension, result) }) // false: deleted meanwhile
		return nil
	}); err != nil {
		s.nodes.config.Log.Error("result of a script", "machine", string(machine), "extension", extension, "error", err)
	}
}

// runScript runs a command in the machine with a disk. It returns an error if the command did not run to its end.
func runScript(ctx context.Context, disk, command string) (compute.Result, error) {
	cmd, err := vm.Enter(ctx, disk, "/bin/sh", "-c", command)
	if err != nil {
		return compute.Result{}, err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case failed && exit.Exited():
		err = nil
	case err != nil:
		return compute.Result{}, err
	}
	return compute.Result{Status: cmd.ProcessState.ExitCode(), Stdout: lastPart(stdout.Bytes()), Stderr: lastPart(stderr.Bytes())}, err
}

// lastPart returns the end of an output, as long as Azure keeps it.
func lastPart(text []byte) string {
	const most = 4096
	return string(text[max(0, len(text)-most):])
}
