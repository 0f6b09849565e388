package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
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

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// What may fail when a machine is off. A load balancer probes every 5 s, waits 5 s for each answer, and drops a machine after two
// silences. The nodes of policy Cluster pass traffic on, also to the pods of a dead node, until that node counts as dead.
const (
	probeNotices = 3*5*time.Second + time.Second
	nodeNotices  = 20*time.Second + 5*time.Second
)

// patient are the workloads with a web server that goes on serving until other nodes know that it ends, as pods behind load
// balancers must.
var patient = strings.Replace(workloads, "terminationGracePeriodSeconds: 0, containers: [{name: web,",
	"containers: [{name: web, lifecycle: {preStop: {sleep: {seconds: 8}}},", 1)

// TestRealFailures ends machines in every possible way under constant requests, and logs the failed
// requests. Finally it kills kaz itself.
func TestRealFailures(t *testing.T) {
	needsReal(t)
	before := hostState(t)
	dir := newDir(t)
	t.Cleanup(func() {
		if said, err := exec.Command(kaz(), "local", "down", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("down: %v: %s", err, said)
		}
	})
	c := startUp(t, dir, "--nodes-kind", "real", "--nodes", "3")
	c.must(patient, "apply", "-f", "-")
	c.routed()
	c.must("", "rollout", "status", "daemonset/web", "--timeout=2m")
	f := &failures{cluster: c, local: c.expose("near", "LoadBalancer", nil, httpPort+`, externalTrafficPolicy: Local`),
		any: c.expose("far", "LoadBalancer", nil, httpPort)}
	f.whole(3)
	for _, one := range []struct {
		name   string
		happen func(*failures)
	}{
		{"killed", killed},
		{"power lost", powerLost},
		{"deallocated", deallocated},
		{"restarted", restarted},
		{"grown and shrunk", grownAndShrunk},
		{"removed as planned", removedAsPlanned},
	} {
		if !t.Run(one.name, func(t *testing.T) { one.happen(f.in(t)) }) {
			return // what comes after begins with a whole cluster
		}
	}
	killedItself(f)
	for what, had := range before {
		if has := hostState(t)[what]; has != had {
			t.Errorf("%s before:\n%s\nafter:\n%s", what, had, has)
		}
	}
}

// failures is a cluster with two Services under constant requests.
type failures struct {
	*cluster
	local, any string // addresses of Services with policy Local and Cluster
}

func (f *failures) in(t *testing.T) *failures {
	return &failures{f.cluster.in(t), f.local, f.any}
}

// whole waits until so many nodes are ready and get traffic of both Services.
func (f *failures) whole(nodes int) {
	f.t.Helper()
	wait(f.t, 2*time.Minute, "all nodes in both load balancers", func() string {
		there := map[string]bool{}
		for _, n := range f.nodes() {
			there[n.Name] = true
			if condition(n, corev1.NodeReady) != corev1.ConditionTrue || len(n.Spec.Taints) > 0 {
				return fmt.Sprintf("%s: taints %v, conditions %v", n.Name, n.Spec.Taints, n.Status.Conditions)
			}
		}
		ready := 0
		for _, p := range get[corev1.PodList](f.cluster, "pods", "-l", "app=web").Items {
			// What was on a node that is gone is forgotten a minute later.
			if there[p.Spec.NodeName] && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				ready++
			}
		}
		if ready != nodes {
			return fmt.Sprintf("%d pods are ready", ready)
		}
		for _, address := range []string{f.local, f.any} {
			if got := f.healthy(address); len(got) != nodes {
				return fmt.Sprintf("healthy backends of %s: %v, want %d", address, got, nodes)
			}
		}
		return ""
	})
}

// healthy are the receivers that the load balancer at an address has.
func (f *failures) healthy(address string) []string {
	f.t.Helper()
	var s struct {
		Balancers []struct {
			Frontend string
			Healthy  []string
		}
	}
	if err := json.Unmarshal([]byte(runKaz(f.t, "local", "status", "--dir", f.dir, "-o", "json")), &s); err != nil {
		f.t.Fatal(err)
	}
	for _, b := range s.Balancers {
		if b.Frontend == address+":80" {
			return b.Healthy
		}
	}
	return nil
}

// stream asks an address again and again until it is closed.
type stream struct {
	stop  chan struct{}
	tasks sync.WaitGroup

	mu     sync.Mutex
	asked  int
	failed []time.Time   // when each that failed had been asked
	late   time.Duration // by how much this machine itself was late at most
	why    error         // the last failure
}

// everySoOften is how often a stream asks.
const everySoOften = 50 * time.Millisecond

func (f *failures) ask(address string) *stream {
	return asks(f.t, func(ctx context.Context) error {
		_, err := askFromHere(ctx, "http://"+address+"/")
		return err
	})
}

// asks sends requests until the stream is closed.
func asks(t *testing.T, once func(ctx context.Context) error) *stream {
	s := &stream{stop: make(chan struct{})}
	t.Cleanup(s.tasks.Wait)
	s.tasks.Go(func() {
		tick := time.NewTicker(everySoOften)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
			began := time.Now()
			s.mu.Lock()
			s.asked++
			s.late = max(s.late, began.Sub(last)-everySoOften)
			s.mu.Unlock()
			last = began
			s.tasks.Go(func() {
				if err := once(t.Context()); err != nil {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.failed, s.why = append(s.failed, began), err
				}
			})
		}
	})
	return s
}

// last returns the time of the last failed request after a moment, and the number of failures.
func (s *stream) last(after time.Time) (time.Duration, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last time.Duration
	for _, at := range s.failed {
		last = max(last, at.Sub(after))
	}
	return last, len(s.failed)
}

// bounds are how long requests may fail after the end of a machine.
type bounds map[string]time.Duration

func planned() bounds { return bounds{"Local": 0, "Cluster": 0} }

// shutDown is for machines that shut down in the pools. The probe of policy Cluster asks a node port. The machine's rules answer it,
// and pass traffic on, until the machine is off.
func shutDown() bounds { return bounds{"Local": 0, "Cluster": probeNotices} }

func noticed() bounds { return bounds{"Local": probeNotices, "Cluster": nodeNotices} }

// shared is a tolerance for machines with other load, because every step depends on scheduled
// programs. Anything later than allowed is logged in any case.
const shared = 20 * time.Second

// bySecond counts the failed requests of each second after a moment.
func (s *stream) bySecond(after time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := map[int]int{}
	for _, at := range s.failed {
		count[int(math.Floor(at.Sub(after).Seconds()))]++
	}
	var all []string
	for _, second := range slices.Sorted(maps.Keys(count)) {
		all = append(all, fmt.Sprintf("%d s: %d", second, count[second]))
	}
	return strings.Join(all, ", ")
}

// under calls happen while both Services are requested. It waits until no request fails and done
// returns "", and checks that no request failed later than allowed. Delays of this machine are
// subtracted.
func (f *failures) under(what string, b bounds, happen func(), done func() string) {
	f.t.Helper()
	streams := map[string]*stream{"Local": f.ask(f.local), "Cluster": f.ask(f.any)}
	happen()
	began := time.Now()
	const quiet = 5 * time.Second
	wait(f.t, 3*time.Minute, "the end of failures after: "+what, func() string {
		for policy, s := range streams {
			if last, n := s.last(began); time.Since(began) < last+quiet+2*time.Second {
				return fmt.Sprintf("policy %s: %d requests failed, the last one was sent after %s: %v", policy, n, short(last), s.why)
			}
		}
		return done()
	})
	for policy, s := range streams {
		close(s.stop)
		s.tasks.Wait()
		last, n := s.last(began)
		f.t.Logf("%s, policy %s: %d of %d requests failed, the last one was sent after %s; this machine was late by %s", what, policy, n,
			s.asked, short(last), short(s.late))
		if n > 0 {
			f.t.Logf("failed requests, policy %s: %s; the last: %v", policy, s.bySecond(began), s.why)
		}
		allowed, bounded := b[policy]
		if bounded && last > allowed+s.late {
			f.t.Logf("MISSED: %s, policy %s: %s is later than %s", what, policy, short(last), allowed)
		}
		if bounded && last > allowed+s.late+shared {
			f.t.Errorf("%s, policy %s: a request that was sent after %s failed, later than %s: %v", what, policy, short(last),
				allowed, s.why)
		}
	}
}

// machineProcess is the process of a node's machine.
func (f *failures) machineProcess(node string) int {
	f.t.Helper()
	for _, p := range attach(f.t, f.dir).status.Components {
		if p.Name == "machine-"+node {
			return p.PID
		}
	}
	f.t.Fatalf("no process of %s", node)
	return 0
}

// ready says what keeps a node from being ready.
func (f *failures) ready(node string) string {
	f.t.Helper()
	n, _ := f.node(node)
	if condition(n, corev1.NodeReady) == corev1.ConditionTrue && len(n.Spec.Taints) == 0 {
		return ""
	}
	return fmt.Sprintf("taints %v, conditions %v", n.Spec.Taints, n.Status.Conditions)
}

// killed kills the machine's process. The machine boots again, after the load balancers noticed.
func killed(f *failures) {
	node := nodeOf(f.instances()[1])
	pid := f.machineProcess(node)
	f.under("the machine is killed", noticed(), func() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			f.t.Fatal(err)
		}
	}, func() string { return f.again(node, pid) })
	f.whole(3)
}

// again says what keeps a machine from being on again with another process.
func (f *failures) again(node string, not int) string {
	f.t.Helper()
	if f.off(node) == "" || slices.Contains(pids(f.dir), not) {
		return "it is not on again"
	}
	return f.ready(node)
}

// do sends an action of a machine, for which the ARM client has no options.
func (f *failures) do(action string, vm azure.Resource[compute.Instance]) {
	f.t.Helper()
	var info struct{ ARMHTTP, Token string }
	if err := json.Unmarshal(readFile(f.t, filepath.Join(f.dir, "azure-state-running.json")), &info); err != nil {
		f.t.Fatal(err)
	}
	separator := "?"
	if strings.Contains(action, "?") {
		separator = "&"
	}
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, info.ARMHTTP+string(vm.ID)+"/"+action+separator+
		"api-version=2024-07-01", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+info.Token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusAccepted {
		f.t.Fatalf("%s: %s", action, answer.Status)
	}
}

// off waits until nothing of a machine runs any more.
func (f *failures) off(node string) string {
	if left := running(f.t, filepath.Join(f.dir, "machines", node)); len(left) > 0 {
		return fmt.Sprintf("%q runs", left)
	}
	return ""
}

// start starts a machine and writes down how long its node takes.
func (f *failures) start(vm azure.Resource[compute.Instance]) {
	f.t.Helper()
	f.act("start", vm)
	took := wait(f.t, machineGone, "the node of a machine that was started", func() string { return f.ready(nodeOf(vm)) })
	f.t.Logf("start: node ready after %s", short(took))
	f.whole(3)
}

// powerLost: Azure takes the power away, and gives it back.
func powerLost(f *failures) {
	vm := f.instances()[1]
	f.under("the machine is powered off without a shutdown", noticed(), func() { f.do("powerOff?skipShutdown=true", vm) },
		func() string { return f.off(nodeOf(vm)) })
	f.start(vm)
}

func deallocated(f *failures) {
	vm := f.instances()[2]
	f.under("the machine is deallocated", shutDown(), func() {
		f.act("deallocate", vm)
		f.isOff(nodeOf(vm))
	}, func() string { return "" })
	f.start(vm)
}

// longestShutdown is the longest time that a machine takes to end, by its own limits. Load balancers notice (11 s). Pods are
// evicted (5 s) and end (60 s). The API server learns of it (2 s). Programs end (5 s), and what is left is killed (10 s).
const longestShutdown = (11 + 5 + 60 + 2 + 5 + 10) * time.Second

// isOff waits until a machine was told to end and did.
func (f *failures) isOff(node string) {
	f.t.Helper()
	wait(f.t, longestShutdown, "the end of "+node, func() string { return f.off(node) })
}

// restarted restarts a machine before its node becomes NotReady; its pods are ready some time later.
func restarted(f *failures) {
	vm := f.instances()[0]
	node := nodeOf(vm)
	pid := f.machineProcess(node)
	f.under("the machine is restarted", nil, func() { f.act("restart", vm) }, func() string { return f.again(node, pid) })
	f.whole(3)
}

// pids are the recorded processes of a cluster.
func pids(dir string) []int {
	var all []int
	files, _ := filepath.Glob(filepath.Join(dir, "run", "*")) // a pattern that cannot be wrong
	for _, file := range files {
		var r struct{ PID int }
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &r) == nil {
			all = append(all, r.PID)
		}
	}
	return all
}

// scale gives the scale set a capacity.
func (f *failures) scale(to int) {
	f.t.Helper()
	body := azure.Document(fmt.Sprintf(`{"sku":{"capacity":%d}}`, to))
	if _, err := f.azure.Patch(f.t.Context(), azure.Write{ID: f.scaleSet(), Body: body}); err != nil {
		f.t.Fatal(err)
	}
}

// removedAsPlanned: a node leaves the pools and is drained before its machine is deleted, as the guide says. No request is lost.
func removedAsPlanned(f *failures) {
	before := map[string]bool{}
	for _, n := range f.nodes() {
		before[n.Name] = true
	}
	f.scale(4)
	added := ""
	wait(f.t, machineGone, "a fourth node", func() string {
		for _, n := range f.nodes() {
			if !before[n.Name] {
				added = n.Name
				return f.ready(added)
			}
		}
		return "it is not there"
	})
	f.whole(4)
	f.under("a machine removed as planned", planned(), func() {
		f.must("", "label", "node", added, corev1.LabelNodeExcludeBalancers+"=true")
		wait(f.t, time.Minute, "the node out of the pools", func() string {
			for _, address := range []string{f.local, f.any} {
				if got := f.healthy(address); len(got) != 3 {
					return fmt.Sprintf("healthy backends of %s: %v", address, got)
				}
			}
			return ""
		})
		f.must("", "drain", added, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=1m")
		f.scale(3)
		f.isOff(added)
	}, func() string {
		if _, found := f.node(added); found {
			return "the node is there"
		}
		return ""
	})
	f.whole(3)
}

// grownAndShrunk: a machine more does no harm, a machine less leaves nothing.
func grownAndShrunk(f *failures) {
	const added = "nodes0-000003"
	var took time.Duration
	f.under("a machine more", noticed(), func() {
		began := time.Now()
		f.scale(4)
		wait(f.t, machineGone, "a fourth node", func() string { return f.ready(added) })
		took = time.Since(began)
	}, func() string { return "" })
	f.t.Logf("a machine more: node ready after %s", short(took))
	f.whole(4)
	f.under("a machine less", shutDown(), func() {
		f.scale(3)
		f.isOff(added)
	}, func() string {
		if _, found := f.node(added); found {
			return "the node is there"
		}
		return ""
	})
	f.whole(3)
	for _, pattern := range []string{filepath.Join(f.dir, "machines", added), "/run/netns/*" + added, "/sys/fs/cgroup/kaz-*/" + added,
		"/sys/fs/cgroup/*/kaz-*/" + added} {
		if left, err := filepath.Glob(pattern); err != nil || len(left) > 0 {
			f.t.Errorf("left of a deleted machine: %v %v", left, err)
		}
	}
}

// killedItself kills kaz: nothing continues, and the next kaz continues with the same nodes and
// addresses. Leftovers are removed by a kaz in another directory and by down.
func killedItself(f *failures) {
	identity := func() map[string]string {
		all := map[string]string{}
		for _, n := range f.nodes() {
			all[n.Name] = fmt.Sprint(n.UID, n.Status.Addresses, n.Spec.PodCIDR)
		}
		return all
	}
	had := identity()
	f.up.signal(syscall.SIGKILL)
	if err := f.up.end(time.Minute); err == nil {
		f.t.Error("killed, and ended well")
	}
	nothingRuns(f.t, f.dir, 30*time.Second)

	f.cluster = startUp(f.t, f.dir, "--nodes-kind", "real")
	f.whole(3)
	for node, want := range identity() {
		if had[node] != want {
			f.t.Errorf("%s was %s and is %s", node, had[node], want)
		}
	}
	for _, address := range []string{f.local, f.any} {
		f.answers("http://" + address + "/")
	}

	f.up.signal(syscall.SIGKILL)
	if err := f.up.end(time.Minute); err == nil {
		f.t.Error("killed, and ended well")
	}
	other := start(f.t, exec.Command(kaz(), "local", "up", "--nodes-kind", "real", "--nodes", "1", "--dir", newDir(f.t)))
	other.says("removed leftovers of kaz-", time.Minute)
	other.says("nodes are real", time.Minute)
	other.signal(syscall.SIGTERM)
	_ = other.end(time.Minute) // in the midst of starting, which it says
	f.t.Logf("down says: %s", strings.ReplaceAll(runKaz(f.t, "local", "down", "--dir", f.dir), "\n", "; "))
	nothingRuns(f.t, f.dir, 30*time.Second)
}
