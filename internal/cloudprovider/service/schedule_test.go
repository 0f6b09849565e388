package service_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	kubetesting "k8s.io/client-go/testing"

	"kaz/internal/arm/cache"
	"kaz/internal/azure"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

var (
	schedules = flag.Uint64("schedules", 0,
		"how many random schedules TestSchedules plays; 0 for as many as the run is long, or for the one of -seed")
	seed = flag.Uint64("seed", 0, "the first schedule that TestSchedules plays")
)

// TestSchedules changes a few Services at random among random disturbances. Requests fail in all ways. Controllers
// stop, start or overlap for a lease, and their informers are late. Nodes go and come, and another owner writes to
// the same documents. In half of the cases Azure reports writes that it did not do. In the end every Service is as it
// asks to be, and what another owner has still exists. It takes a comparison only if Azure reported such writes. When
// all Services are gone, nothing is left.
func TestSchedules(t *testing.T) {
	const short, long = 12, 400
	first, count := max(*seed, 1), *schedules
	switch {
	case count > 0:
	case *seed > 0:
		count = 1
	default:
		count = uint64(shorter(long, short))
	}
	workers := uint64(runtime.GOMAXPROCS(0))
	for i := range workers {
		t.Run(fmt.Sprintf("part %d of %d", i+1, workers), func(t *testing.T) {
			t.Parallel()
			for s := first + i; s < first+count; s += workers {
				playSchedule(t, s)
			}
		})
	}
}

func playSchedule(t *testing.T, seed uint64) {
	t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSchedule(t, seed)
			defer func() {
				if t.Failed() {
					t.Logf("reproduce: go test ./internal/cloudprovider/service -run TestSchedules -seed %d -v\n%s", seed,
						strings.Join(s.story, "\n"))
				}
			}()
			s.play()
		})
	})
}

// schedule is one random sequence of changes and disturbances.
type schedule struct {
	*serviceCluster
	random *rand.Rand
	config service.Config
	before map[string]string
	alive  map[string]bool
	stops  []func() // of the controllers that run
	lies   *liar    // nil if Azure does all that it reports
	foes   *foreigner
	story  []string
	began  time.Time
	crash  chan struct{}
	out    bool // a node is excluded, or deleted
	// deletes says that nodes are deleted instead of excluded. The deleted node is in deleted.
	deletes bool
	deleted *corev1.Node
}

func newSchedule(t *testing.T, seed uint64) *schedule {
	s := &schedule{random: rand.New(rand.NewPCG(seed, 7)), config: config(), alive: map[string]bool{}, deletes: seed%2 == 1,
		crash: make(chan struct{}, 64), began: time.Now()}
	o := core.Options{Latency: float64(s.random.IntN(2)), Seed: seed, Crash: func(core.Fault) {
		select {
		case s.crash <- struct{}{}:
		default:
		}
	}}
	s.serviceCluster = newServiceCluster(t, o, 2)
	if err := testkit.Prepare(t.Context(), s.Client, testkit.Group, testkit.VNet, given); err != nil {
		t.Fatal(err)
	}
	s.config.LoadBalancer.PoolByIP = s.random.IntN(2) == 0
	s.config.RepairPeriod = 2 * time.Hour
	if s.random.IntN(2) == 0 {
		s.lies, s.config.RepairPeriod = &liar{}, 30*time.Minute
	}
	s.before = s.everything()
	s.foes = &foreigner{client: s.OtherClient(), probes: map[string]time.Time{}}
	if s.random.IntN(2) == 0 {
		s.delayNews(time.Duration(s.random.IntN(20)) * time.Second)
	}
	return s
}

func (s *schedule) tell(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf("%6.1f s  ", time.Since(s.began).Seconds())+fmt.Sprintf(format, args...))
}

// delayNews delays what the informers of the controllers receive of Services and nodes.
func (s *schedule) delayNews(by time.Duration) {
	s.tell("news come %v late", by)
	for _, resource := range []schema.GroupVersionResource{servicesResource, corev1.SchemeGroupVersion.WithResource("nodes")} {
		s.client.PrependWatchReactor(resource.Resource, func(a kubetesting.Action) (bool, watch.Interface, error) {
			w, err := s.client.Tracker().Watch(resource, a.GetNamespace())
			if err != nil {
				return true, nil, err
			}
			return true, late(w, by), nil
		})
	}
}

// late passes events on after a while.
func late(w watch.Interface, by time.Duration) watch.Interface {
	out := make(chan watch.Event)
	stopped := make(chan struct{})
	proxy := watch.NewProxyWatcher(out)
	go func() { <-proxy.StopChan(); w.Stop(); close(stopped) }()
	go func() {
		defer close(out)
		for e := range w.ResultChan() {
			select {
			case <-time.After(by):
			case <-stopped:
				return
			}
			select {
			case out <- e:
			case <-stopped:
				return
			}
		}
	}()
	return proxy
}

// lead starts a controller with a client of its own.
func (s *schedule) lead() {
	client := s.OtherClient()
	if s.lies != nil {
		client = s.ClientOver(func(way http.RoundTripper) http.RoundTripper { return s.lies.over(way) })
	}
	s.stops = append(s.stops, s.startWith(s.config, client))
}

func (s *schedule) stopAll() {
	for _, stop := range s.stops {
		stop()
	}
	s.stops = nil
}

func (s *schedule) play() {
	s.lead()
	for range 3 + s.random.IntN(8) {
		s.turn()
		s.restartAfterCrash()
	}
	s.calm()
	names := slices.Sorted(maps.Keys(s.alive))
	s.until("all have their addresses", func() bool {
		return !slices.ContainsFunc(names, func(n string) bool { return len(s.get(n).Status.LoadBalancer.Ingress) == 0 })
	})
	if s.lies == nil {
		<-time.After(20 * time.Minute)
		s.settled()
	}
	// By then, the controller has found what Azure did not do although it said so. It has also found what deleted
	// Services left.
	<-time.After(s.config.RepairPeriod + 10*time.Minute)
	s.rest(s.config, names)
	s.foes.stillThere(s.t, s.deletion(testkit.LoadBalancer))
	for _, name := range names {
		s.remove(name)
	}
	s.allGone(names)
	<-time.After(s.config.RepairPeriod + 10*time.Minute)
	s.foes.leave(s.t)
	// A controller that stops or crashes forgets which of its writes failed.
	s.restoredBut(s.before, s.everything, "/providers/")
}

// settled checks that each Service has what it asks for.
func (s *schedule) settled() {
	look, err := explain.NewInspector(s.t.Context(), inspectorOf(s.config), s.Client.Fresh(), s.client)
	if err != nil {
		s.t.Fatal(err)
	}
	e, err := look.ExplainAll(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, one := range e.Services {
		if one.State != explain.Settled {
			s.t.Errorf("%s is %s: %+v", one.Service, one.State, one)
		}
	}
}

// deletion is when the last deletion of a resource was over.
func (s *schedule) deletion(id azure.ID) (last time.Time) {
	const atMost = time.Minute // that Azure takes
	for _, r := range s.Requests() {
		if r.Method == http.MethodDelete && azure.ID(r.Path).Equal(id) {
			last = r.At.Add(atMost)
		}
	}
	return last
}

// calm ends all disturbances.
func (s *schedule) calm() {
	s.tell("calm")
	if err := s.SetFaults(nil); err != nil {
		s.t.Fatal(err)
	}
	if s.lies != nil {
		s.lies.stop()
	}
	<-time.After(time.Minute)
	s.restartAfterCrash()
	if len(s.stops) == 0 {
		s.lead()
	}
	for len(s.stops) > 1 {
		s.stops[0]()
		s.stops = s.stops[1:]
	}
}

func (s *schedule) restartAfterCrash() {
	select {
	case <-s.crash:
		s.tell("the controllers crash and one starts")
		s.stopAll()
		s.lead()
	default:
	}
}

// turn is one thing that happens, and some time.
func (s *schedule) turn() {
	switch s.random.IntN(9) {
	case 0, 1, 2:
		s.come()
	case 3:
		s.leave()
	case 4:
		s.changeOne()
	case 5:
		s.disturb()
	case 6:
		s.handOver()
	case 7:
		s.tell("another owner writes")
		s.foes.write(s.t)
	case 8:
		s.turnNode()
	}
	<-time.After(time.Duration(s.random.IntN(15000)) * time.Millisecond)
}

func (s *schedule) come() {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(kinds)), func(n string) bool {
		impossible := n == "linked" && s.config.LoadBalancer.PoolByIP // Azure has that before pools of interfaces only
		return !s.gone(n) || impossible || n == "dual" && s.random.IntN(2) == 0
	})
	if len(names) == 0 || len(s.alive) > 4 {
		return
	}
	name := names[s.random.IntN(len(names))]
	s.tell("%s comes", name)
	s.addKind(name)
	s.alive[name] = true
}

func (s *schedule) any() (string, bool) {
	names := slices.Sorted(maps.Keys(s.alive))
	if len(names) == 0 {
		return "", false
	}
	return names[s.random.IntN(len(names))], true
}

func (s *schedule) leave() {
	if name, ok := s.any(); ok {
		s.tell("%s goes", name)
		delete(s.alive, name)
		s.remove(name)
	}
}

func (s *schedule) changeOne() {
	name, ok := s.any()
	change := changes[name]
	if !ok || change == nil {
		return
	}
	s.tell("%s changes", name)
	s.change(name, change)
}

// turnNode takes a node out of the load balancers, or puts it back.
func (s *schedule) turnNode() {
	s.out = !s.out
	switch {
	case !s.deletes:
		node := s.firstNode()
		s.tell("%s is excluded: %v", node, s.out)
		s.exclude(node, fmt.Sprint(s.out))
	case s.out:
		s.deleted = s.nodesByName()[s.firstNode()]
		s.tell("%s is deleted from Kubernetes", s.deleted.Name)
		s.removeNode(s.deleted.Name)
	default:
		s.tell("%s is there again", s.deleted.Name)
		if err := s.client.Tracker().Add(s.deleted); err != nil {
			s.t.Fatal(err)
		}
	}
}

// disturb makes up to two things go wrong from now on.
func (s *schedule) disturb() {
	if s.lies != nil && s.random.IntN(5) == 0 {
		s.tell("the next write of a shared document is said to be done and is not")
		s.lies.tellOne()
		return
	}
	faults := []core.Fault{s.disturbance()}
	if s.random.IntN(2) == 0 {
		faults = append(faults, s.disturbance())
	}
	if err := s.SetFaults(faults); err != nil {
		s.t.Fatal(err)
	}
}

func (s *schedule) disturbance() core.Fault {
	names := slices.Sorted(maps.Keys(disturbances))
	name := names[s.random.IntN(len(names))]
	fault := disturbances[name]
	fault.Method = []string{"PUT", "PUT", "DELETE", "GET"}[s.random.IntN(4)]
	if fault.Method == "GET" {
		fault = core.Fault{Method: "GET", Fault: core.FaultError, Status: 503}
	}
	fault.Times = 1 + s.random.IntN(3)
	s.tell("%s of %s, %d times", name, fault.Method, fault.Times)
	return fault
}

// handOver starts another controller and stops the first, at once or after a while in
// which both believe to lead.
func (s *schedule) handOver() {
	overlap := time.Duration(s.random.IntN(16)) * time.Second
	s.tell("another controller leads, %v before the first one stops", overlap)
	s.lead()
	<-time.After(overlap)
	if len(s.stops) > 1 {
		s.stops[0]()
		s.stops = s.stops[1:]
	}
}

// liar answers writes of load balancers and security groups as Azure would, without
// doing them.
type liar struct {
	mu   sync.Mutex
	lies int
}

func (l *liar) tellOne() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies = 1
}

func (l *liar) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies = 0
}

func (l *liar) lying(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	path := strings.ToLower(r.URL.Path)
	if l.lies == 0 || r.Method != http.MethodPut || !strings.Contains(path, "/loadbalancers/") &&
		!strings.Contains(path, "/networksecuritygroups/") {
		return false
	}
	l.lies--
	return true
}

func (l *liar) over(way http.RoundTripper) http.RoundTripper { return lyingWay{l, way} }

type lyingWay struct {
	liar *liar
	way  http.RoundTripper
}

func (w lyingWay) RoundTrip(r *http.Request) (*http.Response, error) {
	if !w.liar.lying(r) {
		return w.way.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var doc map[string]any
	if err := json.Unmarshal(body, &doc); err != nil {
		return nil, err
	}
	doc["id"], doc["name"] = r.URL.Path, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	if p, ok := doc["properties"].(map[string]any); ok {
		p["provisioningState"] = "Succeeded"
	}
	if body, err = json.Marshal(doc); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(body))),
		ContentLength: int64(len(body)),
	}, nil
}

// foreigner writes to the documents that kaz writes to.
type foreigner struct {
	client *cache.Cache
	rules  []string             // in the security group
	probes map[string]time.Time // in the load balancer, and since when
}

// write adds a rule to the security group, as people do, and a probe to the load balancer if
// that is there.
func (f *foreigner) write(t testing.TB) {
	name := fmt.Sprintf("mine-%d", len(f.rules))
	priority := 3000 + len(f.rules)
	done := f.edit(t, testkit.SecurityGroup, "securityRules", func(rules []any) []any {
		return append(rules, map[string]any{"name": name, "properties": map[string]any{
			"priority": priority, "direction": "Inbound", "access": "Allow", "protocol": "Tcp",
			"sourceAddressPrefix": "192.0.2.0/24", "sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRange": "22",
		}})
	})
	if done {
		f.rules = append(f.rules, name)
	}
	since := time.Now()
	probe := fmt.Sprintf("mine-%d", len(f.probes))
	done = f.edit(t, testkit.LoadBalancer, "probes", func(probes []any) []any {
		return append(probes, map[string]any{"name": probe, "properties": map[string]any{
			"protocol": "Tcp", "port": 8443, "intervalInSeconds": 15, "probeThreshold": 3,
		}})
	})
	if done {
		f.probes[probe] = since
	}
}

// edit changes a list of a document unless another writer was faster.
func (f *foreigner) edit(t testing.TB, id azure.ID, list string, change func(parts []any) []any) bool {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	doc, err := f.client.Fresh().Get(ctx, id)
	if err != nil {
		return false // a disturbance, or it is not there
	}
	var tree map[string]any
	if err := json.Unmarshal(doc, &tree); err != nil {
		t.Fatal(err)
	}
	p := tree["properties"].(map[string]any)
	parts, _ := p[list].([]any)
	p[list] = change(parts)
	body, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.client.Put(ctx, azure.Write{ID: id, Body: body, IfMatch: doc.Etag()})
	return err == nil
}

// has returns those of the names that a document contains.
func (f *foreigner) has(t testing.TB, id azure.ID, all []string) (names []string) {
	t.Helper()
	doc, err := f.client.Fresh().Get(context.WithoutCancel(t.Context()), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if strings.Contains(string(doc), `"`+name+`"`) {
			names = append(names, name)
		}
	}
	return names
}

// stillThere checks that all rules and probes that were written still exist. A load balancer that goes with the last
// Service takes its probes along. The parameter deleted is when that happened last.
func (f *foreigner) stillThere(t testing.TB, deleted time.Time) {
	t.Helper()
	if d := cmp.Diff(f.rules, f.has(t, testkit.SecurityGroup, f.rules)); d != "" {
		t.Errorf("rules of another owner in the security group (-written +there):\n%s", d)
	}
	var probes []string
	for _, name := range slices.Sorted(maps.Keys(f.probes)) {
		if f.probes[name].After(deleted) {
			probes = append(probes, name)
		}
	}
	if len(probes) == 0 {
		return
	}
	if d := cmp.Diff(probes, f.has(t, testkit.LoadBalancer, probes)); d != "" {
		t.Errorf("probes of another owner in the load balancer (-written +there):\n%s", d)
	}
}

func (f *foreigner) leave(t testing.TB) {
	t.Helper()
	const attempts = 20
	for range attempts {
		if f.edit(t, testkit.SecurityGroup, "securityRules", func(rules []any) []any {
			return slices.DeleteFunc(rules, func(r any) bool {
				name, _ := r.(map[string]any)["name"].(string)
				return strings.HasPrefix(name, "mine-")
			})
		}) {
			return
		}
		<-time.After(time.Minute)
	}
	t.Error("the rules of another owner could not be taken away")
}
