// Package directory has the directories of local Azures that run in the background: their files, their start, stop and removal.
// Layer L4.
package directory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kaz/internal/host/atomicfile"
	"kaz/internal/host/freeport"
	"kaz/internal/host/process"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
)

// Files of a directory. All names that begin with those of the state and of the certificate authority are files of the server.
const (
	// markerFile says that all files of the directory are those of a local Azure, so that they may be removed.
	markerFile = "local-azure.json"
	stateFile  = "state.json"
	caFile     = "ca.pem"
	logFile    = "logs/azure.log"
)

// stopGrace is the time that a local Azure gets to save its state and to stop its machines.
const stopGrace = time.Minute

// ErrForeign is returned for a directory that has files of others.
var ErrForeign = errors.New("it is no directory of kaz local azure")

// Claim creates a directory, or takes an empty one, and marks it. It refuses one with files of others.
func Claim(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--dir %s: %w", dir, err)
	}
	if slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == markerFile }) {
		return nil
	}
	if len(entries) > 0 {
		return fmt.Errorf("--dir %s: %w, as it has files such as %s; choose a new or empty one", dir, ErrForeign, entries[0].Name())
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--dir %s: %w", dir, err)
	}
	return atomicfile.WriteJSON(filepath.Join(dir, markerFile), addresses{})
}

// addresses are the IP:PORT at which a local Azure served last. The marker file has them.
type addresses struct {
	ARM   string `json:"arm,omitempty"`
	HTTP  string `json:"http,omitempty"`
	Proxy string `json:"proxy,omitempty"`
}

// Served records the addresses of a local Azure for its next start.
func Served(dir string, info client.Info) error {
	last := addresses{client.HostOf(info.ARM), client.HostOf(info.ARMHTTP), client.HostOf(info.Proxy)}
	return atomicfile.WriteJSON(filepath.Join(dir, markerFile), last)
}

// keepAddresses replaces addresses with any port by those of the last start, if they are free.
func keepAddresses(dir string, o *server.Options) error {
	file := filepath.Join(dir, markerFile)
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var last addresses
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", file, err)
	}
	for _, a := range []struct {
		wanted *string
		last   string
	}{{&o.Address, last.ARM}, {&o.HTTPAddress, last.HTTP}, {&o.ProxyAddress, last.Proxy}} {
		host, anyPort := strings.CutSuffix(*a.wanted, ":0")
		if !anyPort || !strings.HasPrefix(a.last, host+":") {
			continue
		}
		chosen, err := freeport.Choose(a.last)
		if err != nil {
			return err
		}
		*a.wanted = chosen[0]
	}
	return nil
}

// Prepare sets the options that name files, to files of the directory. Addresses with any port become those of the last start.
func Prepare(dir string, o *server.Options) error {
	if o.State != "" {
		return fmt.Errorf("--state %s: --dir has the state; give one of both", o.State)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	o.State, o.CAFile = filepath.Join(dir, stateFile), cmp.Or(o.CAFile, filepath.Join(dir, caFile))
	return keepAddresses(dir, o)
}

// Hold claims a directory and holds it until the caller closes the group.
func Hold(ctx context.Context, dir string) (*process.Group, error) {
	if err := Claim(dir); err != nil {
		return nil, err
	}
	return process.Open(ctx, dir)
}

// Detach runs a program, which is to serve with the directory, in a process of its own. It returns when that serves.
func Detach(ctx context.Context, dir, program string, args []string, progress io.Writer) (client.Info, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return client.Info{}, err
	}
	if owner, running := process.Owner(dir); running {
		return client.Info{}, fmt.Errorf("directory %s is %w by process %d (%s); stop it with: kaz local azure stop --dir %s", dir,
			process.ErrInUse, owner.PID, owner.Path, dir)
	}
	if err := Claim(dir); err != nil {
		return client.Info{}, err
	}
	var info client.Info
	err = process.Detach(ctx, process.Detached{
		What: "the local Azure", Path: program, Args: args, LogFile: filepath.Join(dir, logFile), Progress: progress,
		Interrupted: errors.New("the local Azure did not serve in time, or was interrupted; it is stopped"),
		Ready: func(pid int) bool {
			found, announced := client.OfProcess(ctx, client.FileBeside(filepath.Join(dir, stateFile)), pid)
			info = found
			return announced
		},
	})
	return info, err
}

// check returns an error for a directory that has files of others. One that does not exist has none.
func check(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, markerFile)); err != nil {
		return fmt.Errorf("--dir %s: %w (%w); kaz local down stops a cluster", dir, ErrForeign, err)
	}
	return nil
}

// Stop stops the local Azure of a directory, and reports whether one ran. Its files stay.
func Stop(ctx context.Context, dir string) (stopped bool, err error) {
	if err := check(dir); err != nil {
		return false, err
	}
	running, err := process.StopRecorded(ctx, dir, stopGrace)
	return len(running) > 0, err
}

// Delete stops the local Azure of a directory, removes its files, and the directory if nothing else is in it. It returns the names of
// what stays.
func Delete(ctx context.Context, dir string) (stopped bool, kept []string, err error) {
	if stopped, err = Stop(ctx, dir); err != nil {
		return stopped, nil, err
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return stopped, nil, nil
	}
	group, err := process.Open(ctx, dir) // so that none starts meanwhile
	if err != nil {
		return stopped, nil, err
	}
	err = removeFiles(dir)
	group.Close(ctx, stopGrace)
	if err != nil {
		return stopped, nil, err
	}
	// The marker goes last: a removal that was interrupted goes on in the next one.
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "run")), os.Remove(filepath.Join(dir, markerFile))); err != nil {
		return stopped, nil, err
	}
	if kept, err = names(dir); err != nil || len(kept) > 0 {
		return stopped, kept, err
	}
	return stopped, nil, os.Remove(dir)
}

// removeFiles removes the files of a local Azure except the marker.
func removeFiles(dir string) error {
	own := func(name, of string) bool {
		stem := strings.TrimSuffix(of, filepath.Ext(of))
		return name == of || strings.HasPrefix(name, stem+"-")
	}
	all, err := names(dir)
	if err != nil {
		return err
	}
	for _, name := range all {
		if !own(name, stateFile) && !own(name, caFile) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(dir, logFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	logs := filepath.Join(dir, filepath.Dir(logFile))
	if others, err := names(logs); err != nil || len(others) > 0 {
		return nil // there are no logs, or logs of others
	}
	return os.Remove(logs)
}

func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all, err
}
