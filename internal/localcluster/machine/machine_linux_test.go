package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// role as first argument makes the test binary play the part of a machine's programs.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if f, ok := roles()[os.Args[1]]; ok {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
			defer stop()
			if err := f(ctx, os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	goleak.VerifyTestMain(m)
}

func roles() map[string]func(context.Context, []string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	return map[string]func(context.Context, []string) error{
		"boot": func(ctx context.Context, args []string) error {
			s, err := Read(args[0])
			if err != nil {
				return err
			}
			return Boot(ctx, s, log)
		},
		"--config":                serveSocket, // containerd
		"--address":               func(context.Context, []string) error { return nil },
		"--config=" + kubeletFile: report,
		"--config=" + proxyFile:   func(ctx context.Context, _ []string) error { <-ctx.Done(); return nil },
	}
}

func serveSocket(ctx context.Context, _ []string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		c.Close()
	}
}

// seen is what a program finds inside a machine.
type seen struct {
	Host, Hostname, Resolver string
	Authority, Azure         string
	Forwarding               string // of IPv4 and IPv6, before the first pod
	Processes                []string
	Written                  string
	Temporary                []string // names in /tmp
}

// reportFile is where report writes: on the machine's disk.
const reportFile = "/var/lib/report.json"

func report(ctx context.Context, _ []string) error {
	var r seen
	r.Host, _ = os.Hostname()
	hostname, _ := os.ReadFile("/etc/hostname")
	r.Hostname = strings.TrimSpace(string(hostname))
	processes, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, p := range processes {
		r.Processes = append(r.Processes, filepath.Base(filepath.Dir(p)))
	}
	resolver, _ := os.ReadFile("/etc/resolv.conf")
	r.Resolver = strings.TrimSpace(string(resolver))
	authority, _ := os.ReadFile(authorityFile)
	r.Authority = string(authority)
	azure, _ := os.ReadFile(azureFile)
	r.Azure = strings.Join(strings.Fields(string(azure)), "")
	for _, setting := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		value, _ := os.ReadFile("/proc/sys/net/" + setting)
		r.Forwarding += strings.TrimSpace(string(value))
	}
	temporary, _ := os.ReadDir(hostTmp)
	for _, t := range temporary {
		r.Temporary = append(r.Temporary, t.Name())
	}
	kept, _ := os.ReadFile("/var/lib/kept")
	r.Written = string(kept)
	if err := os.WriteFile("/var/lib/kept", []byte("written"), 0o600); err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// The rename makes the complete file visible at once.
	if err := os.WriteFile(reportFile+".part", text, 0o600); err != nil {
		return err
	}
	if err := os.Rename(reportFile+".part", reportFile); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// needsRoot skips a test where namespaces cannot be made.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("machines are namespaces, and those need root")
	}
	for _, program := range []string{"ip", "nft", "unshare", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("machines need %s: %v", program, err)
		}
	}
	if _, _, err := hierarchies(); err != nil {
		t.Skip(err)
	}
}

func newSpec(t *testing.T) Spec {
	t.Helper()
	namespace := fmt.Sprintf("kaz-test-%d", os.Getpid())
	if err := runWithInput("", "ip", "netns", "add", namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := runWithInput("", "ip", "netns", "delete", namespace); err != nil {
			t.Error(err)
		}
	})
	// A new namespace can inherit the settings of this machine.
	if err := runWithInput("", "ip", "netns", "exec", namespace, "sh", "-c",
		"echo 0 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv6/conf/all/forwarding"); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, []byte("authority"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Spec{
		Search: "internal.example", AzureCA: authority, Tenant: "tenant",
		Place:     Place{Name: "node-1", Dir: t.TempDir(), Namespace: "/run/netns/" + namespace, Cgroup: namespace + "/node-1"},
		Addresses: []netip.Addr{netip.MustParseAddr("10.240.0.4")}, Resolver: netip.MustParseAddr("168.63.129.16"),
		PodRanges:     []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")},
		ServiceRanges: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")},
		Network:       []netip.Prefix{netip.MustParsePrefix("10.240.0.0/16")}, DNS: netip.MustParseAddr("10.96.0.10"),
		Programs: map[string]string{Containerd: self, ctr: self, Kubelet: self, KubeProxy: self}, Images: []string{"image"},
		PauseImage: "pause",
	}
	return s
}

// on runs a machine until the returned function powers it off.
func on(t *testing.T, s Spec) (off func()) {
	t.Helper()
	file, err := s.Write()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, s, s.Programs[Kubelet], "boot", file) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// awaitReport waits for the report of the machine's kubelet.
func awaitReport(t *testing.T, s Spec) seen {
	t.Helper()
	file := filepath.Join(s.Dir, reportFile)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		if text, err := os.ReadFile(file); err == nil {
			var r seen
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	logs, _ := filepath.Glob(filepath.Join(s.Dir, "var/log/*.log"))
	for _, l := range logs {
		text, _ := os.ReadFile(l)
		t.Logf("%s:\n%s", filepath.Base(l), text)
	}
	t.Fatal("the machine has not come up")
	return seen{}
}

// A machine has a world of its own, keeps its disk while it is off, and leaves nothing behind.
func TestMachine(t *testing.T) {
	needsRoot(t)
	s := newSpec(t)
	outside, err := os.CreateTemp(hostTmp, "kaz-test-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(outside.Close(), os.Remove(outside.Name())); err != nil {
			t.Error(err)
		}
	})
	mounts := mountsOutside(t)
	off := on(t, s)
	r := awaitReport(t, s)
	for what, c := range map[string]struct{ got, want string }{
		"host name":         {r.Host, "node-1"},
		"/etc/hostname":     {r.Hostname, "node-1"},
		"/etc/resolv.conf":  {r.Resolver, "nameserver 168.63.129.16\nsearch internal.example"},
		"authority":         {r.Authority, "authority"},
		"azure.json":        {r.Azure, `{"cloud":"AzurePublicCloud","tenantId":"tenant","useManagedIdentityExtension":true}`},
		"forwarding":        {r.Forwarding, "11"},
		"the disk is empty": {r.Written, ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", what, c.got, c.want)
		}
	}
	if slices.Contains(r.Temporary, filepath.Base(outside.Name())) {
		t.Errorf("/tmp inside is that of the host: %v", r.Temporary)
	}
	// The first process, containerd, kubelet, and kube-proxy if it was faster.
	if len(r.Processes) < 3 || len(r.Processes) > 4 {
		t.Errorf("processes inside: %v", r.Processes)
	}
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	enter, err := Enter(t.Context(), s.Dir, "sh", "-c", "cat /etc/hostname; echo $HTTPS_PROXY $HOME")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := enter.CombinedOutput(); err != nil || string(said) != "node-1\n/root\n" {
		t.Errorf("a shell in the machine: %v: %s", err, said)
	}
	off()
	if _, err := Enter(t.Context(), s.Dir); err == nil || !strings.Contains(err.Error(), "is off") {
		t.Errorf("a shell in a machine that is off: %v", err)
	}
	if err := os.Remove(filepath.Join(s.Dir, reportFile)); err != nil {
		t.Fatal(err)
	}
	off = on(t, s)
	if r := awaitReport(t, s); r.Written != "written" {
		t.Errorf("the disk holds %q after a restart", r.Written)
	}
	off()
	if after := mountsOutside(t); after != mounts {
		t.Errorf("mounts outside are others than before:\n%s", after)
	}
	_, roots, err := hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range roots {
		if _, err := os.Stat(filepath.Join(root, s.Cgroup)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("cgroup is left in %s: %v", root, err)
		}
	}
	if err := RemoveCgroups(filepath.Dir(s.Cgroup)); err != nil {
		t.Error(err)
	}
}

// mountsOutside are the mounts of this machine, but for network namespaces, which other tests make at the same time.
func mountsOutside(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	var others []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, " /run/netns") {
			others = append(others, line)
		}
	}
	return strings.Join(others, "")
}

func TestReadRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"{":                        "unexpected end",
		"{}":                       "name is missing",
		`{"addresses":["10.0.0"]}`: "ParseAddr",
		`{"cgroup":"../x"}`:        "cgroup is missing or invalid",
	} {
		file := filepath.Join(t.TempDir(), "machine.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(file); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
