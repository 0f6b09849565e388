package realnodes

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	compute "kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/inventory"
	vm "kaz/internal/localcluster/machine"
	"kaz/internal/pause"
)

// scripts runs the scripts of extensions and run commands on machines, as the guest agent does.
type scripts struct {
	nodes   *Nodes
	running map[string]bool // by machine and key of the script
	ended   chan string
}

// runScripts runs the scripts of machines until ctx is done.
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
		key := m.ID.Key() + " " + script.Key
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
	log := s.nodes.config.Log.With("machine", m.Name, "script", script.Key)
	s.record(m.ID, script.Key, func(doc behaviour.Object, at time.Time) { compute.SetStarted(doc, script.Key, at) })
	result, err := runScript(ctx, filepath.Join(DisksDir(s.nodes.config.Dir), m.Name), script)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		log.Warn("script did not end", "error", err)
		_ = pause.For(ctx, retryDelay)
		return
	}
	log.Info("script ended", "status", result.Status)
	s.record(m.ID, script.Key, func(doc behaviour.Object, at time.Time) { compute.SetResult(doc, script.Key, result, at) })
}

// record changes what the document of a machine says about a script.
func (s scripts) record(machine azure.ID, key string, change func(doc behaviour.Object, at time.Time)) {
	if err := s.nodes.config.Azure.Emulator().Do(func(w behaviour.World) error {
		w.Edit(machine, func(doc behaviour.Object) { change(doc, w.Now()) }) // false: deleted meanwhile
		return nil
	}); err != nil {
		s.nodes.config.Log.Error("state of a script", "machine", string(machine), "script", key, "error", err)
	}
}

// runScript runs a script in the machine with a disk. It returns an error if the script did not run to its end.
func runScript(ctx context.Context, disk string, script compute.Script) (compute.Result, error) {
	args, input := commandOf(script)
	cmd, err := vm.Enter(ctx, disk, args...)
	if err != nil {
		return compute.Result{}, err
	}
	cmd.Stdin = strings.NewReader(input)
	return runCommand(cmd, script.Timeout)
}

// runCommand runs a command to its end. The command itself keeps the timeout.
func runCommand(cmd *exec.Cmd, timeout time.Duration) (compute.Result, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && (!failed || !exit.Exited()) {
		return compute.Result{}, err
	}
	result := compute.Result{Status: cmd.ProcessState.ExitCode(), Stdout: lastPart(stdout.Bytes()), Stderr: lastPart(stderr.Bytes())}
	const timedOut, killed = 124, 137 // of timeout(1)
	result.TimedOut = timeout > 0 && time.Since(began) >= timeout && (result.Status == timedOut || result.Status == killed)
	return result, nil
}

// scriptFile is the command of the shell that stores a script file in a directory and runs it. Its arguments are, in order:
//
//   - the directory
//   - the URL of the file, or "" for standard input
//   - the user, or "" for root
//   - the timeout in seconds
//   - the shell
//   - the arguments of the script
const scriptFile = `set -e
dir=$1 uri=$2 user=$3 limit=$4 shell=$5
shift 5
if [ -n "$user" ]; then
	dir=/home/$user/waagent/run-command-handler-runas/${dir##*/download/}
fi
mkdir -p "$dir"
cd "$dir"
rm -f script.sh
if [ -n "$uri" ]; then
	curl --fail --silent --show-error --location --output script.sh "$uri"
else
	cat >script.sh
fi
chmod 500 script.sh
if [ -n "$user" ]; then
	chown "$user" script.sh
	set -- sudo -n -u "$user" ./script.sh "$@"
else
	set -- ./script.sh "$@"
fi
exec timeout --kill-after=5 "$limit" "$shell" -c '"$@"' "$shell" "$@" </dev/null
`

// commandOf returns the command that runs a script in a machine, and its standard input.
func commandOf(s compute.Script) (args []string, input string) {
	if s.Dir == "" {
		return []string{"/bin/sh", "-c", s.Text}, ""
	}
	limit := strconv.FormatFloat(s.Timeout.Seconds(), 'f', -1, 64)
	args = slices.Concat([]string{"/usr/bin/env"}, s.Env,
		[]string{"/bin/sh", "-c", scriptFile, "sh", s.Dir, s.URI, s.User, limit, s.Shell}, s.Args)
	return args, s.Text
}

// lastPart returns the end of an output, as long as Azure keeps it.
func lastPart(text []byte) string {
	const most = 4096
	return string(text[max(0, len(text)-most):])
}
