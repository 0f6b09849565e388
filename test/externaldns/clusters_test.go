package externaldns_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
)

const (
	hostname      = "external-dns.kubernetes.io/hostname"
	setIdentifier = "external-dns.kubernetes.io/set-identifier"
	lease         = time.Minute // the least that the webhook takes
)

// federation is clusters of `kaz local up` that serve names of one zone. The zone is in a local Azure of its own.
type federation struct {
	t        *testing.T
	programs string // directory
	info     client.Info
	names    *net.Resolver
}

// TestClusters has two clusters on this machine serve one name: their Services come, change and go, one cluster dies and comes back, one is
// cut off from Azure and comes back, and the Service of one loses its endpoints.
func TestClusters(t *testing.T) {
	if testing.Short() {
		t.Skip("two clusters and their leases take minutes")
	}
	f := newFederation(t)
	var east, west *site
	var both sync.WaitGroup
	both.Go(func() { east = f.found("east") })
	both.Go(func() { west = f.found("west") })
	both.Wait()
	if t.Failed() {
		return
	}
	west.service("other", "") // the first address of both clusters is the same one
	west.address("other")
	for _, s := range []*site{east, west} {
		s.start()
		s.service("web", "app.example.com")
	}
	e, w := east.address("web"), west.address("web")
	if e == w {
		t.Fatalf("both clusters have the address %s", e)
	}
	f.answers("both clusters have the Service", "app", e, w)
	f.printed(map[string][]string{
		"app.example.com A +short": {e, w}, "west._kaz-lease.example.com TXT +short": {"cluster=west"},
		"app.example.com A": {"ANSWER: 2", e, w}, "a-app.example.com TXT +short": {"owner=east", "owner=west"},
	})
	f.explained(west, "east", "west", e, w)

	east.host("web", "moved.example.com")
	f.answers("a Service has another name", "app", w)
	f.answers("its new name", "moved", e)
	east.host("web", "app.example.com")
	f.answers("it has its name again", "app", e, w)
	f.answers("the name that it left", "moved")
	east.remove("web")
	f.answers("a Service is gone", "app", w)
	east.service("web", "app.example.com")
	e = east.address("web")
	f.answers("it is there again", "app", e, w)

	west.scale(0)
	f.answers("no endpoint is ready", "app", e)
	west.scale(1)
	f.answers("one is ready", "app", e, w)

	west.kill()
	f.answers("a cluster is dead", "app", e)
	west.up()
	west.start()
	f.answers("it is back", "app", e, w)

	east.line.cut(true)
	f.answers("a cluster is cut off", "app", w)
	east.line.cut(false)
	f.answers("it is not", "app", e, w)
}

func newFederation(t *testing.T) *federation {
	t.Helper()
	f := &federation{t: t, programs: t.TempDir()}
	build := exec.Command("go", "build", "-o", f.programs+string(filepath.Separator), "./cmd/...")
	build.Dir, build.Env = filepath.Join("..", ".."), append(build.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the programs: %v: %s", err, said)
	}
	s, err := server.Start(t.Context(), server.Options{Log: slog.New(slog.DiscardHandler), DNSAddress: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	f.info = s.Info()
	local, err := client.New(f.info)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for _, id := range []azure.ID{f.group(), f.group().Resource(network.DNSZones, "example.com")} {
		if _, err := local.Put(t.Context(), string(id), []byte(`{"location":"`+location(id)+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	f.names = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, protocol, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, protocol, f.info.DNS)
	}}
	return f
}

func (f *federation) group() azure.ID { return azure.GroupID(f.info.Subscription, "dns") }

// answers waits until the zone answers these addresses at a name.
func (f *federation) answers(when, name string, want ...string) {
	f.t.Helper()
	began := time.Now()
	slices.Sort(want)
	wait(f.t, when, 5*lease, func(ctx context.Context) string {
		got, err := f.names.LookupHost(ctx, name+".example.com.")
		if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
			err = nil
		}
		slices.Sort(got)
		if err == nil && slices.Equal(got, want) {
			return ""
		}
		return fmt.Sprintf("%s answers %v (%v), want %v", name, got, err, want)
	})
	f.t.Logf("%s: %s answers %v after %s", when, name, want, time.Since(began).Round(time.Second))
}

// explained waits until kaz explain name says that all is well, and checks that it mentions what it should.
func (f *federation) explained(s *site, want ...string) {
	f.t.Helper()
	wait(f.t, "kaz explain name", 2*lease, func(context.Context) string {
		out, err := s.try(filepath.Join(f.programs, "kaz"), "explain", "name", "app.example.com", "--cloud-config", s.config, "--server", f.info.DNS)
		for _, one := range want {
			if err != nil || !strings.Contains(out, one) {
				return fmt.Sprintf("want %s in (%v) %s", one, err, out)
			}
		}
		return ""
	})
}

// printed runs the guide's questions to the name server, and checks what they answer.
func (f *federation) printed(want map[string][]string) {
	f.t.Helper()
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "dns.md"))
	if err != nil {
		f.t.Fatal(err)
	}
	const server = "dig @127.0.0.1 -p 5354 "
	_, port, err := net.SplitHostPort(f.info.DNS)
	if err != nil {
		f.t.Fatal(err)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(guide)) {
		question, ok := strings.CutPrefix(strings.TrimSpace(line), server)
		if !ok {
			continue
		}
		seen[question] = true
		wait(f.t, question, 2*lease, func(ctx context.Context) string {
			out, err := exec.CommandContext(ctx, "dig", append([]string{"@127.0.0.1", "-p", port}, strings.Fields(question)...)...).CombinedOutput()
			for _, one := range want[question] {
				if err != nil || !strings.Contains(string(out), one) {
					return fmt.Sprintf("want %s in (%v) %s", one, err, out)
				}
			}
			return ""
		})
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		f.t.Errorf("the guide asks %q, and the test knows %q", got, slices.Sorted(maps.Keys(want)))
	}
}

// site is one of the clusters, with its webhook and its ExternalDNS.
type site struct {
	*federation
	name   string
	dir    string // of the cluster
	kube   kubernetes.Interface
	config string // azure.json of the webhook
	line   *wire
	stop   func() // ends webhook and ExternalDNS, as if they were killed
}

// found makes a cluster with pods behind the label app=web.
func (f *federation) found(name string) *site {
	s := &site{federation: f, name: name, dir: filepath.Join(f.t.TempDir(), "kaz"), line: newWire(f.t, client.HostOf(f.info.ARM)), stop: func() {}}
	f.t.Cleanup(func() {
		s.stop()
		if said, err := exec.Command(filepath.Join(f.programs, "kaz"), "local", "down", "--dir", s.dir).CombinedOutput(); err != nil {
			f.t.Errorf("down: %v: %s", err, said)
		}
	})
	azure := "https://" + s.line.address
	text, err := json.Marshal(map[string]any{
		"cloud": "AzureStackCloud", "tenantId": f.info.Tenant, "subscriptionId": f.info.Subscription, "resourceGroup": "dns",
		"location": "westeurope", "useManagedIdentityExtension": true, "resourceManagerEndpoint": azure,
	})
	s.config = filepath.Join(f.t.TempDir(), "azure.json")
	if err == nil {
		err = os.WriteFile(s.config, text, 0o600)
	}
	if err != nil {
		f.t.Error(err)
		return s
	}
	s.up()
	s.pods()
	return s
}

// pods makes a pod that the Services select.
func (s *site) pods() {
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
			},
		},
	}
	if _, err := s.kube.AppsV1().Deployments("default").Create(s.t.Context(), web, metav1.CreateOptions{}); err != nil {
		s.t.Error(err)
	}
}

// up starts the cluster, or continues it.
func (s *site) up() {
	s.run(filepath.Join(s.programs, "kaz"), "local", "up", "--nodes-kind=hollow", "--nodes=1", "--detach", "--dir", s.dir)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(s.dir, "kubeconfig"))
	if err == nil {
		s.kube, err = kubernetes.NewForConfig(config)
	}
	if err != nil {
		s.t.Error(err)
	}
}

// run runs a program with the environment of the identity in the zone's Azure, and returns what it wrote.
func (s *site) run(name string, args ...string) string {
	out, err := s.try(name, args...)
	if err != nil {
		s.t.Errorf("%s %q: %v: %s", name, args, err, out)
	}
	return out
}

// try is run for programs that may fail.
func (s *site) try(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	cmd.Env = append(cmd.Environ(), s.environment()...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *site) environment() []string {
	return []string{
		"SSL_CERT_FILE=" + s.info.CAFile, "IDENTITY_ENDPOINT=" + s.info.IdentityEndpoint, "IDENTITY_HEADER=" + s.info.IdentityHeader,
	}
}

// start starts the webhook, and an ExternalDNS that makes a round each second.
func (s *site) start() {
	s.t.Helper()
	address := free(s.t)
	hook := exec.Command(filepath.Join(s.programs, "external-dns-webhook"), "--cloud-config", s.config, "--webhook-address", address,
		"--metrics-address=", "--cluster-id", s.name, "--lease", lease.String(), "--unready-after=5s",
		"--kubeconfig", filepath.Join(s.dir, "kubeconfig"))
	hook.Env = append(hook.Environ(), s.environment()...)
	log, err := os.OpenFile(filepath.Join(filepath.Dir(s.config), "webhook.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	hook.Stdout, hook.Stderr = log, log
	hook.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := hook.Start(); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	var loop sync.WaitGroup
	s.stop = sync.OnceFunc(func() {
		cancel()
		loop.Wait()
		err := hook.Process.Kill()
		_ = hook.Wait() // says that it was killed
		if err := errors.Join(err, log.Close()); err != nil {
			s.t.Error(err)
		}
		if text, err := os.ReadFile(log.Name()); s.t.Failed() {
			s.t.Logf("the webhook of %s wrote (%v):\n%s", s.name, err, text)
		}
	})
	wait(s.t, "the webhook of "+s.name, time.Minute, func(ctx context.Context) string { return answered(ctx, "http://"+address) })
	dns := newExternalDNS(s.t, "http://"+address, func(c *externaldns.Config) { c.TXTOwnerID = s.name })
	loop.Go(func() { s.rounds(ctx, dns) })
}

// rounds is ExternalDNS at work. Its errors end with the next round.
func (s *site) rounds(ctx context.Context, dns *cluster) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if err := s.round(ctx, dns); err != nil && ctx.Err() == nil {
			s.t.Logf("ExternalDNS in %s: %v", s.name, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// round is what ExternalDNS's source for Services and its controller do.
func (s *site) round(ctx context.Context, dns *cluster) error {
	all, err := s.kube.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	dns.want = nil
	for _, one := range all.Items {
		var targets []string
		for _, in := range one.Status.LoadBalancer.Ingress {
			targets = append(targets, in.IP)
		}
		if name := one.Annotations[hostname]; name != "" && len(targets) > 0 {
			e := endpoint.NewEndpoint(name, typeA, targets...).WithSetIdentifier(one.Annotations[setIdentifier])
			e.Labels[endpoint.ResourceLabelKey] = "service/" + one.Namespace + "/" + one.Name
			dns.want = append(dns.want, e)
		}
	}
	_, err = dns.sync()
	return err
}

// kill kills the cluster with all that runs in it.
func (s *site) kill() {
	s.stop()
	s.run(filepath.Join(s.programs, "kaz"), "local", "down", "--dir", s.dir)
}

// service makes a Service. Without a host it has no name.
func (s *site) service(name, host string) {
	one := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	if host != "" {
		one.Annotations = map[string]string{hostname: host, setIdentifier: s.name}
	}
	if _, err := s.kube.CoreV1().Services("default").Create(s.t.Context(), one, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// address waits for the address of a Service.
func (s *site) address(name string) (ip string) {
	wait(s.t, "an address of "+name+" in "+s.name, 2*time.Minute, func(ctx context.Context) string {
		one, err := s.kube.CoreV1().Services("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil || len(one.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Sprint("none yet ", err)
		}
		ip = one.Status.LoadBalancer.Ingress[0].IP
		return ""
	})
	return ip
}

// host changes the name of a Service.
func (s *site) host(name, host string) {
	services := s.kube.CoreV1().Services("default")
	one, err := services.Get(s.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		one.Annotations[hostname] = host
		_, err = services.Update(s.t.Context(), one, metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// remove deletes a Service and waits until it is gone.
func (s *site) remove(name string) {
	services := s.kube.CoreV1().Services("default")
	if err := services.Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	wait(s.t, "the end of "+name, 2*time.Minute, func(ctx context.Context) string {
		all, err := services.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil || len(all.Items) > 0 {
			return fmt.Sprint("still there ", err)
		}
		return ""
	})
}

// scale changes the number of pods behind the Services.
func (s *site) scale(replicas int32) {
	deployments := s.kube.AppsV1().Deployments("default")
	scale, err := deployments.GetScale(s.t.Context(), "web", metav1.GetOptions{})
	if err == nil {
		scale.Spec.Replicas = replicas
		_, err = deployments.UpdateScale(s.t.Context(), "web", scale, metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// wire carries connections to an address, until it is cut.
type wire struct {
	address string // host and port
	mu      sync.Mutex
	isCut   bool
	open    map[net.Conn]bool
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{address: listener.Addr().String(), open: map[net.Conn]bool{}}
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() { w.carry(from, to) })
		}
	})
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		w.cut(true)
		tasks.Wait()
	})
	return w
}

// carry copies both ways until one side ends.
func (w *wire) carry(from net.Conn, address string) {
	defer w.end(from)
	if !w.begin(from) {
		return
	}
	to, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return
	}
	defer w.end(to)
	if !w.begin(to) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(from, to) // the connection ends, however it ends
		w.end(from)
	})
	_, _ = io.Copy(to, from)
	w.end(to)
	back.Wait()
}

func (w *wire) begin(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open[c] = true
	return !w.isCut
}

func (w *wire) end(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, c)
	_ = c.Close() // it may be closed
}

// cut ends all connections and lets none begin, or mends the wire.
func (w *wire) cut(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = cut
	for c := range w.open {
		_ = c.Close()
	}
}

// wait waits until a look finds nothing wrong.
func wait(t *testing.T, what string, most time.Duration, look func(ctx context.Context) (wrong string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		wrong := look(ctx)
		if wrong == "" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: after %s: %s", what, most, wrong)
		case <-tick.C:
		}
	}
}

// answered reports what keeps a webhook from answering.
func answered(ctx context.Context, url string) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Accept", "application/external.dns.webhook+json;version=1")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err.Error()
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Sprint(answer.Status, " ", err)
	}
	return ""
}

// free returns a loopback address that was free a moment ago.
func free(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return listener.Addr().String()
}
