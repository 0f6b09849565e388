package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"kaz/internal/emulator/plane/fabric/netns"
)

// Host is the host's side of the tests of a package.
type Host struct {
	Network *Network
	Dir     string // of the servers; the guest can read it
	servers []*exec.Cmd
}

func newHost(ctx context.Context) (*Host, error) {
	dir, err := os.MkdirTemp("", "kaz-guest-host-")
	if err != nil {
		return nil, err
	}
	network, err := NewNetwork(ctx)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Host{Network: network, Dir: dir}, nil
}

// Serve starts a server in the network, and returns when it accepts connections at a TCP port of the host's address. The
// server ends with the tests. Its output is shown if they fail.
func (h *Host) Serve(ctx context.Context, port int, program string, args ...string) error {
	log, err := os.Create(h.log(len(h.servers)))
	if err != nil {
		return err
	}
	defer log.Close()
	server := exec.Command(program, args...)
	server.Stdout, server.Stderr = log, log
	// Servers that fork are one process namespace: all end with the first.
	server.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := netns.Do(h.Network.Namespace, server.Start); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	h.servers = append(h.servers, server)
	if err := h.accepts(ctx, port); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}

// accepts waits until a server accepts connections.
func (h *Host) accepts(ctx context.Context, port int) error {
	const patience, pause = 20 * time.Second, 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	address := net.JoinHostPort(h.Network.Host.String(), fmt.Sprint(port))
	for {
		err := netns.Do(h.Network.Namespace, func() error {
			connection, err := net.Dial("tcp", address)
			if err != nil {
				return err
			}
			return connection.Close()
		})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func (h *Host) log(server int) string { return filepath.Join(h.Dir, fmt.Sprintf("server-%d.log", server)) }

// logs returns an error with the output of the servers, nil if there is none.
func (h *Host) logs() error {
	var all []error
	for i, server := range h.servers {
		if text, err := os.ReadFile(h.log(i)); err != nil || len(text) > 0 {
			all = append(all, fmt.Errorf("output of %s: %w\n%s", server.Path, err, text))
		}
	}
	return errors.Join(all...)
}

// close ends the servers, the last started first, and removes what the host made.
func (h *Host) close() error {
	for _, server := range slices.Backward(h.servers) {
		_ = server.Process.Kill() // it has ended otherwise
		_ = server.Wait()         // its error is that it was killed
	}
	return errors.Join(h.Network.Close(), os.RemoveAll(h.Dir))
}
