package service_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

// These tests check that kaz is as fast as it promises. They run in simulated time, with the recorded latency of
// Azure and with its limits of requests. Each test logs what it measured; docs/performance.md has the figures.

var (
	speedSeed = flag.Uint64("speed-seed", 3, "what chance makes of Azure's latency in TestSpeed")
	speedRuns = flag.Uint64("speed-runs", 1, "how often TestSpeed plays each case, each time with the next seed")
)

// hundred is how many nodes the clusters of these tests have.
const hundred = 100

// cost is what something took.
type cost struct {
	took                         time.Duration
	reads, polls, writes         int
	deletes                      int
	balancers, groups, publicIPs int // writes of them
	throttled                    int // requests that Azure refused because there were too many
}

func (c cost) String() string {
	return fmt.Sprintf("%.1f s, %d reads, %d polls, %d writes (%d of load balancers, %d of security groups, %d of public IPs), %d "+
		"deletes, %d refused as too many",
		c.took.Seconds(), c.reads, c.polls, c.writes, c.balancers, c.groups, c.publicIPs, c.deletes, c.throttled)
}

// The promised time where Azure's limits count has two parts. The first is the minimum time that the limits leave:
// max((writes-200)/10, (deletes-200)/10) s. The second is one public IP, load balancer and security group one after
// the other, by Azure's recorded latencies. That is 17.5 s to create them (5.2+1, 3.5 and 4.8+3 s), and 22 s to
// delete them.
const (
	aimOf250        = 29 * time.Second // 5/4 of 5.5 + 17.5 s
	aimOf500        = 72 * time.Second // 3/2 of 30.5 + 17.5 s
	aimOfDeleting   = 78 * time.Second // 3/2 of 30 + 22 s
	askedPerAddress = 1.5              // polls and reads for a public IP that is made or goes
	// oneWriteOfEach is the load balancer's and the security group's part of the 17.5 s.
	oneWriteOfEach = 11300 * time.Millisecond
)

// measure counts what do costs. Before it calls do, it waits until Azure's counts of requests are full.
func (w *serviceCluster) measure(do func()) cost {
	w.t.Helper()
	const full = 10 * time.Minute // until Azure's counts of requests are full again
	<-time.After(full)
	w.Forget()
	began := time.Now()
	do()
	c := cost{took: time.Since(began)}
	for _, r := range w.Requests() {
		switch {
		case r.Status == 429:
			c.throttled++
		case r.IsPoll():
			c.polls++
		case r.IsRead():
			c.reads++
		case r.Method == "DELETE":
			c.deletes++
		default:
			c.writes++
			switch {
			case strings.Contains(r.Path, "/publicIPAddresses/"):
				c.publicIPs++
			case strings.Contains(r.Path, "/loadBalancers/"):
				c.balancers++
			case strings.Contains(r.Path, "/networkSecurityGroups/"):
				c.groups++
			}
		}
	}
	return c
}

// burst is how long the calls of one burst take to come.
const burst = 50 * time.Millisecond

// arrive creates Services as an apply of one file does: within a burst, not in one moment.
func (w *serviceCluster) arrive(count int) []string {
	w.t.Helper()
	names := make([]string, count)
	w.spread(count, func(i int) {
		names[i] = fmt.Sprintf("web-%d", i)
		w.create(w.newService(names[i], 80))
	})
	return names
}

// spread does something count times within a burst, with random time in between.
func (w *serviceCluster) spread(count int, do func(int)) {
	w.t.Helper()
	chance := rand.New(rand.NewPCG(*speedSeed, uint64(count)))
	for i := range count {
		do(i)
		<-time.After(time.Duration(chance.Int64N(2 * int64(burst) / int64(count))))
	}
}

// quiet waits until no request is sent for a minute. It returns how long it took until the last request was answered.
func (w *serviceCluster) quiet() time.Duration {
	began := time.Now()
	const while = time.Minute
	for {
		before := len(w.Requests())
		<-time.After(while)
		all := w.Requests()
		if len(all) == before {
			if before == 0 {
				return 0
			}
			last := all[len(all)-1]
			return last.At.Add(last.Took).Sub(began)
		}
	}
}

// byAddress is a cluster with pools of addresses and this number of nodes of scale sets. No request is needed for
// these nodes.
func byAddress(t *testing.T, azure core.Options, count int, sets ...string) (*serviceCluster, service.Config) {
	w := newServiceCluster(t, azure, 1)
	for i := range count - 1 {
		w.addAddress(i, sets[i%len(sets)])
	}
	c := config()
	c.LoadBalancer.PoolByIP = true
	for i, set := range sets {
		if len(sets) > 1 {
			c.LoadBalancer.Balancers = append(c.LoadBalancer.Balancers, balancerFor(i, set))
		}
	}
	return w, c
}

// addAddress registers a node that has an address in the nodes' subnet.
func (w *serviceCluster) addAddress(i int, set string) string {
	w.t.Helper()
	vm := testkit.Group.Resource("Microsoft.Compute/virtualMachineScaleSets", set).Child("virtualMachines", fmt.Sprint(i+1))
	id, err := nodes.ProviderID(vm)
	if err != nil {
		w.t.Fatal(err)
	}
	const perByte = 250
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%06d", set, i+1)}, Spec: corev1.NodeSpec{ProviderID: id}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP,
		Address: fmt.Sprintf("10.240.%d.%d", 1+i/perByte, 1+i%perByte)}}
	if err := w.client.Tracker().Add(node); err != nil {
		w.t.Fatal(err)
	}
	return node.Name
}

func (w *serviceCluster) dropNode(name string) {
	w.t.Helper()
	if err := w.client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", name); err != nil {
		w.t.Fatal(err)
	}
}

// speeds are the promises.
var speeds = map[string]struct {
	long bool
	test func(t *testing.T, azure core.Options)
}{
	"100 Services, pool of addresses": {long: true, test: func(t *testing.T, azure core.Options) {
		w, c := byAddress(t, azure, hundred, testkit.ScaleSet)
		w.start(c)
		got := w.measure(func() { w.allServed(w.arrive(100)) })
		got.holds(t, limits{took: 45 * time.Second, reads: 30, balancers: 10, groups: 10, publicIPs: 100, asked: askedPerAddress * 100})
	}},
	"100 Services, filled pool of interfaces": {long: true, test: func(t *testing.T, azure core.Options) {
		w := newServiceCluster(t, azure, hundred)
		w.start(config())
		w.create(w.newService("first", 80))
		w.served("first")
		got := w.measure(func() { w.allServed(w.arrive(100)) })
		got.holds(t, limits{took: 45 * time.Second, reads: 30, balancers: 10, groups: 10, publicIPs: 100, asked: askedPerAddress * 100})
	}},
	"100 Services, empty pool of interfaces": {long: true, test: func(t *testing.T, azure core.Options) {
		w := newServiceCluster(t, azure, hundred)
		w.start(config())
		var late time.Duration
		got := w.measure(func() {
			names := w.arrive(100)
			<-time.After(30 * time.Second)
			began := time.Now()
			w.create(w.newService("late", 80))
			w.served("late")
			late = time.Since(began)
			w.allServed(names)
			w.until("all nodes are in the pool", func() bool { return w.members() == hundred })
		})
		t.Logf("a Service that comes after 30 s is served after %.0f s", late.Seconds())
		// The late Service is served when the pool begins to fill, and that begins with a write of the scale set. One
		// in ten of these writes takes a minute, and one of the recorded writes took ten. The time beyond that of
		// nine in ten writes is Azure's own. The instances of one scale set are written in turn, so the first answers
		// to their requests come one after the other.
		const nineInTen = 53 * time.Second
		got.holds(t, limits{took: 150*time.Second + max(0, w.scaleSetTook()-nineInTen) + w.firstAnswers(), publicIPs: 101})
	}},
	"500 Services over two load balancers, and back": {long: true, test: func(t *testing.T, azure core.Options) {
		w, c := byAddress(t, azure, hundred, testkit.ScaleSet, "other")
		w.start(c)
		var names []string
		got := w.measure(func() {
			names = w.arrive(500)
			w.allServed(names)
		})
		got.holds(t, limits{took: aimOf500, publicIPs: 500, asked: askedPerAddress * 500})
		got = w.measure(func() {
			w.spread(len(names), func(i int) { w.remove(names[i]) })
			w.allGone(names)
		})
		got.holds(t, limits{took: aimOfDeleting, asked: askedPerAddress * 500})
	}},
	"a new Service while 250 are made": {long: true, test: func(t *testing.T, azure core.Options) {
		w, c := byAddress(t, azure, hundred, testkit.ScaleSet)
		w.start(c)
		names := w.arrive(250)
		<-time.After(3 * time.Second)
		w.Forget()
		w.create(w.newService("late", 80))
		w.served("late")
		w.joinedNextWrite("late")
		w.allServed(names)
	}},
	"restart": {test: func(t *testing.T, azure core.Options) {
		w, c := byAddress(t, azure, hundred, testkit.ScaleSet)
		stop := w.start(c)
		w.allServed(w.arrive(shorter(250, 20)))
		w.settle()
		stop()
		w.Reopen()
		var settled time.Duration
		got := w.measure(func() {
			w.start(c)
			settled = w.quiet()
		})
		got.took = settled
		got.holds(t, limits{took: 15 * time.Second, reads: 12, nothing: true})
	}},
	"a node comes and goes": {test: func(t *testing.T, azure core.Options) {
		w, c := byAddress(t, azure, hundred, testkit.ScaleSet)
		w.start(c)
		w.allServed(w.arrive(shorter(250, 20)))
		w.settle()
		for _, change := range []func(){
			func() { w.addAddress(hundred, testkit.ScaleSet) },
			func() { w.dropNode(fmt.Sprintf("%s-%06d", testkit.ScaleSet, hundred+1)) },
		} {
			got := w.measure(func() {
				change()
				w.quiet()
			})
			got.took = 0
			got.holds(t, limits{reads: 6, writes: 2})
			if got.writes == 0 {
				t.Error("nothing was written")
			}
		}
	}},
	"50 nodes at once": {long: true, test: func(t *testing.T, azure core.Options) {
		w, c := byAddress(t, azure, hundred, testkit.ScaleSet)
		w.start(c)
		w.allServed(w.arrive(shorter(250, 20)))
		w.settle()
		got := w.measure(func() {
			w.spread(50, func(i int) { w.addAddress(hundred+i, testkit.ScaleSet) })
			w.quiet()
		})
		got.took = 0
		got.holds(t, limits{reads: 6, writes: 2})
	}},
	"a port changes": {test: func(t *testing.T, azure core.Options) {
		w, c := byAddress(t, azure, hundred, testkit.ScaleSet)
		w.start(c)
		w.allServed(w.arrive(shorter(250, 20)))
		w.settle()
		var settled time.Duration
		got := w.measure(func() {
			w.change("web-7", func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
			settled = w.quiet()
		})
		got.took = settled
		got.holds(t, limits{took: 20 * time.Second, reads: 4, writes: 2})
		if got.writes != 2 {
			t.Errorf("%d writes, want one of the load balancer and one of the security group", got.writes)
		}
	}},
}

// scaleSetTook is the time from the first write of the scale set to that of an instance,
// which follows it.
func (w *serviceCluster) scaleSetTook() time.Duration {
	w.t.Helper()
	var began time.Time
	for _, r := range w.Requests() {
		switch {
		case r.Method != "PUT" || !strings.Contains(r.Path, "/virtualMachineScaleSets/"):
		case strings.Contains(r.Path, "/virtualMachines/"):
			return r.At.Sub(began)
		case began.IsZero():
			began = r.At
		}
	}
	w.t.Fatal("no instance of the scale set was written")
	return 0
}

// firstAnswers is the sum of the times of the writes of instances, each until its first answer.
func (w *serviceCluster) firstAnswers() (sum time.Duration) {
	for _, r := range w.Requests() {
		if r.Method == "PUT" && strings.Contains(r.Path, "/virtualMachines/") {
			sum += r.Took
		}
	}
	return sum
}

// shorter is a count of Services where the short run takes fewer.
func shorter(long, short int) int {
	if testing.Short() {
		return short
	}
	return long
}

func TestSpeed(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(speeds)) {
		if speeds[name].long && testing.Short() {
			continue
		}
		for i := range *speedRuns {
			azure := core.Options{Latency: 1, Throttle: true, Seed: *speedSeed + i}
			t.Run(fmt.Sprintf("%s/%d", name, azure.Seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { speeds[name].test(t, azure) })
			})
		}
	}
}

// The slowest of 250 public IPs can come just too late for the current write, and no Service waits for another's. So
// the time of one run depends on chance, and the mean of all runs is compared with the aim. The mean is 1.7 s below
// the aim. The number of runs is such that it passes the aim by chance at most once in ten thousand tests. The log
// also shows the minimum time that the slowest public IP of each run allows.
func TestMeanSpeed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute and more")
	}
	const enough = 60
	var took, least time.Duration
	runs := max(enough, *speedRuns)
	for i := range runs {
		azure := core.Options{Latency: 1, Throttle: true, Seed: *speedSeed + i}
		t.Run(fmt.Sprint(azure.Seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := byAddress(t, azure, hundred, testkit.ScaleSet)
				w.start(c)
				var addresses time.Duration
				got := w.measure(func() {
					last := w.lastAddress()
					w.allServed(w.arrive(250))
					addresses = last()
				})
				got.holds(t, limits{balancers: 20, publicIPs: 250, asked: askedPerAddress * 250})
				took += got.took
				least += addresses + oneWriteOfEach
			})
		})
	}
	mean := took / time.Duration(runs)
	t.Logf("%.1f s on average; at most %.0f s; the slowest public IPs took at least %.1f s on average",
		mean.Seconds(), aimOf250.Seconds(), (least / time.Duration(runs)).Seconds())
	if mean > aimOf250 {
		t.Errorf("250 Services took %v on average of %d runs, want at most %v", mean, runs, aimOf250)
	}
}

// lastAddress watches Azure. The returned function ends the watch, and tells how long from the call it took until the
// last public IP was made. It does not matter whether kaz noticed that.
func (w *serviceCluster) lastAddress() func() time.Duration {
	began := time.Now()
	var last time.Duration
	ctx, cancel := context.WithCancel(w.t.Context())
	changes, ended := w.Subscribe(), make(chan struct{})
	go func() {
		defer close(ended)
		changes(ctx, func(batch []core.Change) {
			for _, c := range batch {
				if c.ID.Type() == network.PublicIPAddresses && isMade(c.New) && !isMade(c.Old) {
					last = time.Since(began)
				}
			}
		})
	}()
	return func() time.Duration {
		cancel()
		<-ended
		return last
	}
}

func isMade(doc map[string]any) bool {
	properties, _ := doc["properties"].(map[string]any)
	return properties["provisioningState"] == "Succeeded"
}

// limits are the most that something may cost; 0 is without limit.
type limits struct {
	took                                        time.Duration
	reads, writes, balancers, groups, publicIPs int
	asked                                       int  // reads and polls
	nothing                                     bool // nothing may be written
}

func (c cost) holds(t *testing.T, most limits) {
	t.Helper()
	t.Logf("%v; at most %.0f s", c, most.took.Seconds())
	if most.took > 0 && c.took > most.took {
		t.Errorf("it took %v, want at most %v", c.took, most.took)
	}
	for _, one := range []struct {
		what      string
		got, most int
	}{
		{"reads", c.reads, most.reads}, {"writes", c.writes + c.deletes, most.writes},
		{"writes of load balancers", c.balancers, most.balancers},
		{"writes of security groups", c.groups, most.groups}, {"writes of public IPs", c.publicIPs, most.publicIPs},
		{"reads and polls", c.reads + c.polls, most.asked},
	} {
		if one.most > 0 && one.got > one.most {
			t.Errorf("%d %s, want at most %d", one.got, one.what, one.most)
		}
	}
	if most.nothing && c.writes+c.deletes > 0 {
		t.Errorf("%d writes and %d deletes, want none", c.writes, c.deletes)
	}
}

func balancerFor(i int, set string) loadbalancer.Balancer {
	b := loadbalancer.Balancer{Name: testkit.ClusterName, AllowPlacement: true, PrimaryVMSet: set}
	if i > 0 {
		b.Name = fmt.Sprintf("lb%d", i+1)
	}
	return b
}
