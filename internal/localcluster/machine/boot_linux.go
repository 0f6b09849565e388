package machine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// Boot is the first process of a machine: it mounts the file systems and runs the programs until ctx is done.
func Boot(ctx context.Context, s Spec, log *slog.Logger) error {
	if os.Getpid() != 1 {
		return errors.New("only the first process of a machine can boot it")
	}
	shutdown := make(chan os.Signal, 1)
	signal.Notify(shutdown, shutdownSignal)
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("host name: %w", err)
	}
	if err := mountAll(s.Dir); err != nil {
		return err
	}
	if err := mountTmp(s); err != nil {
		return err
	}
	if err := runWithInput("", "ip", "link", "set", "lo", "up"); err != nil {
		return err
	}
	if err := forward(); err != nil {
		return err
	}
	if err := configure(s); err != nil {
		return err
	}
	v, err := newSupervisor(ctx, s, log)
	if err != nil {
		return err
	}
	return v.run(ctx, shutdown)
}

// forward makes the kernel forward packets. The CNI plugin does so for the first pod, but that is too late. A node is
// healthy for load balancers once kube-proxy runs, and must then forward connections to pods of other nodes.
func forward() error {
	for _, name := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		err := os.WriteFile("/proc/sys/net/"+name, []byte("1"), 0o644)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
			return err
		}
	}
	return nil
}

// mountAll mounts the file systems of the machine in its own mount namespace. Of the host's file systems the machine
// writes only its disk.
func mountAll(disk string) error {
	for _, dir := range []string{"var/lib", "var/log", "var/tmp", "etc/upper", "etc/work", DevicesDir} {
		if err := os.MkdirAll(filepath.Join(disk, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.MkdirAll("/"+DevicesDir, 0o755); err != nil {
		return err
	}
	overlay := fmt.Sprintf("lowerdir=/etc,upperdir=%[1]s/etc/upper,workdir=%[1]s/etc/work", disk)
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		// Pods share mounts with the kubelet by propagation.
		{"", "/", "", unix.MS_REC | unix.MS_SHARED, ""},
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"overlay", "/etc", "overlay", 0, overlay},
		{filepath.Join(disk, "var"), "/var", "", unix.MS_BIND | unix.MS_REC, ""},
		// Without this, a mount below /var would also appear at the other path of the directory. The disk driver would take
		// it for a second use of the disk.
		{"", "/var", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{"", "/var", "", unix.MS_REC | unix.MS_SHARED, ""},
		// The links to the machine's own disks, in place of the links of the host.
		{filepath.Join(disk, DevicesDir), "/" + DevicesDir, "", unix.MS_BIND, ""},
		{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s %s: %w", m.kind, m.target, err)
		}
	}
	for _, dir := range []string{"/run/netns", "/run/lock", "/run/kaz", "/run/cni", diskDriverDir, fileDriverDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("/run", "/var/run"); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// hostTmp is the directory of temporary files.
const hostTmp = "/tmp"

// mountTmp mounts a /tmp of the machine's own. The files that the machine needs stay at their paths if they are below the
// host's /tmp.
func mountTmp(s Spec) error {
	own := filepath.Join(s.Dir, "tmp")
	if err := os.MkdirAll(own, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(own, 0o777|os.ModeSticky); err != nil {
		return err
	}
	for _, dir := range s.dirs() {
		inside, err := filepath.Rel(hostTmp, dir)
		if err != nil || !filepath.IsLocal(inside) {
			continue
		}
		target := filepath.Join(own, inside)
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(dir, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	if err := unix.Mount(own, hostTmp, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", hostTmp, err)
	}
	return nil
}

// supervisor runs a machine's programs.
type supervisor struct {
	spec  Spec
	log   *slog.Logger
	child *children
	login *loginManager
}

func newSupervisor(ctx context.Context, s Spec, log *slog.Logger) (*supervisor, error) {
	login, err := serveLogin(ctx, busSocket, log)
	return &supervisor{spec: s, log: log, child: newChildren(), login: login}, err
}

// run starts containerd, imports the images, starts the other programs, and restarts programs that end. It returns when
// ctx is done, or after a shutdown.
func (v *supervisor) run(ctx context.Context, shutdown <-chan os.Signal) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer v.child.endAll(shutdownGrace - time.Second)
	go v.child.reap(ctx)
	if err := v.keep(ctx, program{name: Containerd, args: []string{"--config", containerdFile}}); err != nil {
		return err
	}
	if err := awaitSocket(ctx, socket); err != nil {
		return unlessDone(ctx, err)
	}
	for _, image := range v.spec.Images {
		if err := v.once(ctx, program{name: ctr, args: importArgs(image)}); err != nil {
			return unlessDone(ctx, fmt.Errorf("image %s: %w", image, err))
		}
	}
	serving, leave := context.WithCancel(ctx)
	defer leave()
	for _, p := range v.programs() {
		running := ctx
		if p.name == KubeProxy {
			running = serving
		}
		if err := v.keep(running, p); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
	case <-shutdown:
		leave()
		v.shutDown(ctx)
	}
	return nil
}

// probesNotice is the time in which load balancers notice that a node is unhealthy: two probes with 5 s between them.
const probesNotice = 11 * time.Second

// podsReported is the time in which the kubelet tells the API server of the end of its pods, after it let the shutdown go on.
const podsReported = 2 * time.Second

// evictionTime is the longest time in which the API server is asked to evict the pods of the machine.
const evictionTime = 5 * time.Second

// shutDown takes the machine out of service before its programs end. It ends kube-proxy, which answers the probes of load
// balancers; its rules still pass packets on. When the load balancers have noticed, the pods are evicted, and the kubelet ends them.
func (v *supervisor) shutDown(ctx context.Context) {
	v.log.Info("shutting down")
	v.child.end(time.Second, func(c child) bool { return c.name == KubeProxy })
	select {
	case <-ctx.Done():
		return
	case <-time.After(probesNotice):
	}
	v.evict(ctx, ofNoDaemonSet)
	ctx, cancel := context.WithTimeout(ctx, longestInhibition)
	defer cancel()
	// A DaemonSet replaces its pods at once. The kubelet refuses new pods as soon as the shutdown is announced.
	var daemons sync.WaitGroup
	daemons.Go(func() { v.evict(ctx, ofDaemonSet) })
	if err := v.login.announce(ctx); err != nil {
		v.log.Warn("the shutdown does not wait longer for pods", "error", err)
	}
	daemons.Wait()
	select {
	case <-ctx.Done():
	case <-time.After(podsReported):
	}
}

// evict has some pods leave their Services. What goes wrong is no reason not to shut down.
func (v *supervisor) evict(ctx context.Context, which func(*corev1.Pod) bool) {
	ctx, cancel := context.WithTimeout(ctx, evictionTime)
	defer cancel()
	client, err := openCluster(v.spec.Kubelet)
	if err == nil {
		err = evictPods(ctx, client, v.spec.Name, which)
	}
	if err != nil {
		v.log.Warn("some pods are not evicted before the shutdown", "error", err)
	}
}

// unlessDone returns err, nil if ctx is done.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// programs returns the programs beside containerd.
func (v *supervisor) programs() []program {
	s := v.spec
	var addresses []string
	for _, a := range s.Addresses {
		addresses = append(addresses, a.String())
	}
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		labels = append(labels, key+"="+s.Labels[key])
	}
	all := []program{
		{name: Kubelet, args: []string{
			"--config=" + kubeletFile, "--kubeconfig=" + s.Kubelet, "--hostname-override=" + s.Name,
			"--cloud-provider=external", "--node-ip=" + strings.Join(addresses, ","), "--cert-dir=/var/lib/kubelet/pki",
			"--node-labels=" + strings.Join(labels, ","),
			"--image-credential-provider-config=" + credentialFile, "--image-credential-provider-bin-dir=" +
				filepath.Dir(s.Programs[NodeManager]),
		}},
		{name: KubeProxy, args: []string{"--config=" + proxyFile}},
	}
	if s.NodeManager != "" {
		all = append(all, program{name: NodeManager, log: "cloud-node-manager", args: []string{
			"cloud-node-manager", "--node-name=" + s.Name, "--kubeconfig=" + s.NodeManager, fmt.Sprintf("--wait-routes=%t", s.WaitRoutes),
		}})
	}
	if s.Disks {
		all = append(all, diskDriver(s))
	}
	if s.Shares != "" { // without an identity of the machine it has the keys of accounts from Secrets
		all = append(all, nodeService(s, "azurefile-csi-driver", fileDriverDir, "--kubeconfig="+s.Shares))
	}
	return all
}

// The directories with the sockets of the drivers.
const (
	diskDriverDir = "/var/lib/kubelet/plugins/disk.csi.azure.com"
	fileDriverDir = "/var/lib/kubelet/plugins/file.csi.azure.com"
)

// diskDriver returns the node service of the disk driver.
func diskDriver(s Spec) program {
	args := []string{"--cloud-config=" + azureFile}
	if s.DataDisks > 0 {
		args = append(args, fmt.Sprintf("--volume-attach-limit=%d", s.DataDisks))
	}
	return nodeService(s, "azuredisk-csi-driver", diskDriverDir, args...)
}

// nodeService returns the node service of a driver. It registers itself with the kubelet.
func nodeService(s Spec, driver, dir string, args ...string) program {
	socket := dir + "/csi.sock"
	return program{name: NodeManager, log: driver, args: append([]string{
		driver, "--mode=node", "--nodeid=" + s.Name, "--endpoint=unix://" + socket,
		"--kubelet-registration-path=" + socket, "--plugin-registration-path=/var/lib/kubelet/plugins_registry",
	}, args...)}
}

// awaitSocket waits until a server accepts connections at a Unix socket. inotify would report the socket before that.
func awaitSocket(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var d net.Dialer
		c, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no server at %s: %w", path, err)
		case <-tick.C:
		}
	}
}
