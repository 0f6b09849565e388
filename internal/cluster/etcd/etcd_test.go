package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kaz/internal/cluster/inspect"
	"kaz/internal/localcluster/controlplane"
)

// ring is a real etcd of several members on loopback addresses.
type ring struct {
	t       *testing.T
	program string
	clients map[string]string
	peers   map[string]string
	running map[string]*exec.Cmd
	quota   int // of bytes, 0 for that of etcd
}

func address(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// start starts members of one new etcd.
func start(t *testing.T, names ...string) (*ring, *Client) {
	t.Helper()
	return startWith(t, 0, names...)
}

// startWith starts members with a quota.
func startWith(t *testing.T, quota int, names ...string) (*ring, *Client) {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs etcd")
	}
	programs, err := controlplane.Build(t.Context(), controlplane.BuildOptions{Without: slices.Concat(
		controlplane.StoragePrograms(), controlplane.MachinePrograms(), []string{
			controlplane.APIServer, controlplane.ControllerManager, controlplane.Scheduler, controlplane.Kubectl, controlplane.KWOK,
			controlplane.Kubelet, controlplane.KubeProxy, controlplane.CoreDNS,
		})})
	if err != nil {
		t.Fatal(err)
	}
	r := &ring{t: t, program: programs[controlplane.Etcd], clients: map[string]string{}, peers: map[string]string{},
		running: map[string]*exec.Cmd{}, quota: quota}
	var initial []string
	for _, name := range names {
		r.clients[name], r.peers[name] = address(t), address(t)
		initial = append(initial, name+"=http://"+r.peers[name])
	}
	for _, name := range names {
		r.run(name, strings.Join(initial, ","), "new")
	}
	t.Cleanup(func() {
		for name := range r.running {
			r.stop(name)
		}
	})
	return r, &Client{
		Names: func(context.Context) ([]string, error) { return names, nil },
		Dial: func(_ context.Context, member string) (string, func(), error) {
			return r.clients[member], func() {}, nil
		},
		Timeout: time.Second,
	}
}

func (r *ring) run(name, initial, state string) {
	r.t.Helper()
	command := exec.Command(r.program, "--name", name, "--data-dir", filepath.Join(r.t.TempDir(), name),
		"--listen-client-urls", "http://"+r.clients[name], "--advertise-client-urls", "http://"+r.clients[name],
		"--listen-peer-urls", "http://"+r.peers[name], "--initial-advertise-peer-urls", "http://"+r.peers[name],
		"--initial-cluster", initial, "--initial-cluster-state", state, "--log-level", "error", "--logger", "zap",
		"--quota-backend-bytes", strconv.Itoa(r.quota))
	if err := command.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.running[name] = command
}

func (r *ring) stop(name string) {
	_ = r.running[name].Process.Kill()
	_ = r.running[name].Wait()
	delete(r.running, name)
}

// until repeats a look at the members until it is as wanted.
func until(t *testing.T, c *Client, want func([]inspect.EtcdMember) bool) []inspect.EtcdMember {
	t.Helper()
	var members []inspect.EtcdMember
	var err error
	deadline := time.After(30 * time.Second)
	for {
		if members, err = c.Members(t.Context()); err == nil && want(members) {
			return members
		}
		select {
		case <-deadline:
			t.Fatalf("members %+v, %v", members, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func healthy(members []inspect.EtcdMember) (count int, leader string) {
	for _, m := range members {
		if m.Healthy {
			count++
		}
		if m.Leader {
			leader = m.Name
		}
	}
	return count, leader
}

// TestNoCertificate checks the error of a client that may not read its certificate.
func TestNoCertificate(t *testing.T) {
	denied := errors.New("403")
	c := &Client{
		Names: func(context.Context) ([]string, error) { return []string{"cp-0", "cp-1"}, nil },
		Dial:  func(context.Context, string) (string, func(), error) { return "127.0.0.1:1", func() {}, nil },
		TLS:   func(context.Context) (*tls.Config, error) { return nil, denied },
	}
	if _, err := c.Members(t.Context()); !errors.Is(err, inspect.ErrEtcdAccess) || !errors.Is(err, denied) {
		t.Errorf("got %v, want %v with its cause", err, inspect.ErrEtcdAccess)
	}
}

// TestMembers checks three things with a real etcd. The leader is removed after another member has become the leader. A dead
// member is found and removed. A backup is complete.
func TestMembers(t *testing.T) {
	r, c := start(t, "cp-0", "cp-1", "cp-2")
	members := until(t, c, func(all []inspect.EtcdMember) bool {
		count, leader := healthy(all)
		return count == 3 && leader != ""
	})
	var saved string
	c.Put = func(_ context.Context, name string, backup *os.File) (string, error) {
		saved = filepath.Join(t.TempDir(), name)
		text, err := io.ReadAll(backup)
		if err != nil {
			return "", err
		}
		return saved, os.WriteFile(saved, text, 0o600)
	}
	if at, err := c.Save(t.Context()); err != nil || at != saved {
		t.Fatalf("%q %v", at, err)
	}
	file, err := os.Open(saved)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := Check(file); err != nil {
		t.Error(err)
	}

	_, leader := healthy(members)
	if err := c.Remove(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	r.stop(leader)
	left := until(t, c, func(all []inspect.EtcdMember) bool { count, _ := healthy(all); return count == 2 && len(all) == 2 })
	if err := c.Remove(t.Context(), leader); err != nil {
		t.Errorf("removed twice: %v", err)
	}
	_, now := healthy(left)
	if now == "" || now == leader {
		t.Errorf("leader %q", now)
	}
	for _, m := range left {
		if m.Name != now {
			r.stop(m.Name)
		}
	}
	if _, err := c.Members(t.Context()); err != nil {
		return // the rest has no majority, and etcd answers no question about members
	}
	if count, _ := healthy(until(t, c, func(all []inspect.EtcdMember) bool { count, _ := healthy(all); return count < 2 })); count > 1 {
		t.Errorf("%d members are healthy", count)
	}
}

// TestDamagedBackup checks that a backup that is cut or changed is refused.
func TestDamagedBackup(t *testing.T) {
	for text, want := range map[string]string{strings.Repeat("x", 512): "it is cut", strings.Repeat("x", 512+32): "it is damaged", "": "it is cut"} {
		if err := Check(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %v", len(text), err)
		}
	}
}

// TestNoMember checks the error when no member runs.
func TestNoMember(t *testing.T) {
	c := &Client{Names: func(context.Context) ([]string, error) { return nil, nil }}
	if _, err := c.Members(t.Context()); err == nil || fmt.Sprint(err) != "no member of etcd runs" {
		t.Error(err)
	}
}
