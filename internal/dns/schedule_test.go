package dns_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
)

var (
	seed      = flag.Uint64("seed", 0, "the seed of the first random schedule")
	schedules = flag.Uint64("schedules", 0, "how many random schedules TestSchedules plays; 0 for as many as the run is long")
)

// chaos is a way to Azure that loses requests and answers, and answers 429.
type chaos struct {
	http.RoundTripper
	mu     sync.Mutex
	random *rand.Rand
	on     bool
}

func (c *chaos) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	dice := 1.0
	if c.on {
		dice = c.random.Float64()
	}
	c.mu.Unlock()
	if dice < .04 {
		return nil, errors.New("the request is lost")
	}
	answer, err := c.RoundTripper.RoundTrip(r)
	if dice < .1 && err == nil {
		return nil, errors.Join(errors.New("the answer is lost"), answer.Body.Close())
	}
	return answer, err
}

func (c *chaos) turn(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = on
}

// play is a random schedule of clusters that share names, in a zone with a foreign record.
type play struct {
	*zonedAzure
	random  *rand.Rand
	members []*member
	lines   []*chaos
	keepers []context.CancelFunc
	steps   []string
}

const (
	players = 3
	shows   = 4 // shared names
)

func newPlay(t *testing.T, seed uint64) *play {
	p := &play{zonedAzure: newZonedAzure(t, core.Options{Seed: seed}), random: rand.New(rand.NewPCG(seed, 1))}
	for n := range players {
		one := *p.zonedAzure
		one.log = nil
		way := &chaos{RoundTripper: p.Transport(), random: rand.New(rand.NewPCG(seed, uint64(n)+2)), on: true}
		m := &member{name: fmt.Sprintf("c%d", n)}
		one.config.Azure, one.config.Cluster = client(t, way), m.name
		m.externalDNS = &externalDNS{w: &one, owner: m.name}
		p.members, p.lines, p.keepers = append(p.members, m), append(p.lines, way), append(p.keepers, func() {})
		p.boot(n)
	}
	p.set(public, "A", "human", object{"TTL": 60, "ARecords": []object{{"ipv4Address": "9.9.9.9"}}})
	return p
}

// boot starts a cluster's program anew.
func (p *play) boot(n int) {
	p.keepers[n]()
	p.members[n].w.restart()
	ctx, cancel := context.WithCancel(p.t.Context())
	p.keepers[n] = cancel
	keeper := p.members[n].w.provider.NewKeeper(nil)
	go func() { _ = keeper.Run(ctx) }()
}

// step does one random thing and checks what must always hold.
func (p *play) step() {
	before := p.contributions()
	n := p.random.IntN(players)
	m := p.members[n]
	what := p.random.IntN(10)
	switch {
	case what < 3:
		m.want = p.draw(m.name)
	case what < 7:
		m.loop()
	case what == 7:
		p.boot(n)
	case what == 8:
		p.fault(core.Fault{Method: "PUT", Type: network.DNSZones + "/A", Fault: "error", Status: 429, RetryAfter: 5, Times: p.random.IntN(3)})
	default:
		p.meanwhile()
	}
	p.steps = append(p.steps, fmt.Sprintf("%d of %s", what, m.name))
	pass(time.Duration(p.random.IntN(120)) * time.Second)
	p.check(before)
}

// meanwhile has all clusters make a round at the same time.
func (p *play) meanwhile() {
	var done sync.WaitGroup
	for _, m := range p.members {
		done.Go(func() { m.loop() })
	}
	done.Wait()
}

// draw returns what a cluster wants from now on.
func (p *play) draw(cluster string) (all []records.Endpoint) {
	for n := range shows {
		if p.random.IntN(3) > 0 {
			all = append(all, shared(cluster, fmt.Sprintf("s%d", n), fmt.Sprintf("10.%s.0.%d", cluster[1:], p.random.IntN(3)+1)))
		}
	}
	if p.random.IntN(3) > 0 {
		target := fmt.Sprintf("20.%s.0.%d", cluster[1:], p.random.IntN(3)+1)
		all = append(all, routed(cluster, "t", target, "weighted", "webhook/weight", fmt.Sprint(p.random.IntN(9)+1)))
	}
	return all
}

// contributions are the names that clusters have in Azure, as "c0 s1 TYPE". A name with contributions must have an address.
func (p *play) contributions() map[string]bool {
	all := map[string]bool{}
	docs, err := p.Client.Fresh().List(context.WithoutCancel(p.t.Context()), azure.Query{Scope: public, Type: network.DNSZones + "/recordsets"})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, doc := range docs {
		s, err := records.Read(records.Zone{ID: public, Name: public.Name()}, doc)
		if err != nil || s.Unreadable != nil {
			p.t.Fatal(err, s.Unreadable)
		}
		for _, c := range s.Shares {
			all[c.Cluster+" "+s.Name+" "+s.Type] = true
		}
		if len(s.Shares) > 0 && len(s.Targets) == 0 && s.Alias == "" {
			p.fail("%s has contributions and no target", s.Name)
		}
	}
	return all
}

func (p *play) fail(format string, args ...any) {
	p.t.Helper()
	p.t.Errorf(format+"\nafter %s", append(args, strings.Join(p.steps, ", "))...)
}

// wanted is what a cluster is to have in Azure.
func (m *member) wanted() map[string]bool {
	all := map[string]bool{}
	for _, e := range m.want {
		name := strings.TrimSuffix(e.Name, ".example.com")
		all[m.name+" "+name+" A"], all[m.name+" a-"+name+" TXT"] = true, true
	}
	return all
}

// check checks that no cluster lost what it still wants.
func (p *play) check(before map[string]bool) {
	after := p.contributions()
	for _, m := range p.members {
		for one := range m.wanted() {
			record := strings.TrimSuffix(strings.Replace(one, " a-", " ", 1), " TXT")
			whole := before[one] && (before[record] || before[record+" A"]) // else it is half of a name, and may go
			if whole && !after[one] {
				p.fail("%s is lost", one)
			}
		}
	}
	want(p.t, "the foreign record", p.value(public, "A", "human"), "9.9.9.9")
}

// end lets the clusters come to rest without faults. All that they want is there, and nothing else.
func (p *play) end() {
	p.fault()
	for _, l := range p.lines {
		l.turn(false)
	}
	for range 15 {
		for _, m := range p.members {
			m.loop()
			pass(time.Minute)
		}
	}
	all := map[string]bool{}
	for _, m := range p.members {
		want(p.t, "at rest", m.loop(), 0)
		maps.Copy(all, m.wanted())
	}
	if have := p.contributions(); !maps.Equal(have, all) {
		p.fail("at rest: got %v, want %v", slices.Sorted(maps.Keys(have)), slices.Sorted(maps.Keys(all)))
	}
	for n := range shows {
		var targets []string
		for _, m := range p.members {
			for _, e := range m.want {
				if e.Name == fmt.Sprintf("s%d.example.com", n) {
					targets = append(targets, e.Targets...)
				}
			}
		}
		have := strings.FieldsFunc(p.value(public, "A", fmt.Sprintf("s%d", n)), func(r rune) bool { return r == '|' })
		slices.Sort(have)
		slices.Sort(targets)
		if !slices.Equal(have, targets) {
			p.fail("s%d answers %v, want %v", n, have, targets)
		}
	}
	traffic := ""
	for _, m := range p.members {
		for _, e := range m.want {
			if e.Name == "t.example.com" {
				traffic += fmt.Sprintf(" %s=%s*%s", m.name, e.Targets[0], e.ProviderSpecific[2].Value)
			}
		}
	}
	if traffic != "" {
		traffic = "Weighted" + traffic
	}
	want(p.t, "Traffic Manager", p.profiles(), traffic)
	for _, stop := range p.keepers {
		stop()
	}
}

// TestSchedules plays random schedules of clusters that share names: lost requests and answers, 429, programs that start anew between
// two writes of a name, and rounds at the same time. -seed and -schedules say which and how many.
func TestSchedules(t *testing.T) {
	first, count := max(*seed, 1), *schedules
	switch {
	case count > 0:
	case *seed > 0:
		count = 1
	case testing.Short():
		count = 30
	default:
		count = 200
	}
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPlay(t, seed)
				for range 25 {
					p.step()
				}
				p.end()
			})
		})
	}
}
