package loadbalancer_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// scene is a cluster at the end of a scenario, as a predecessor leaves it.
type scene struct {
	row  int    // of the scenarios, 0 for what a defect of the predecessor leaves
	is   string // what is the case
	none string // why the scenario can leave no state of its own

	config     func(*loadbalancer.Config)
	given      []string // documents that do not belong to the cluster
	machines   []machine
	at         map[string]string // load balancers of Services, where there is a choice
	endpoints  map[string][]string
	namespaces map[string]map[string]string

	before []*v1.Service       // Services as they were at first
	have   []*v1.Service       // Services as they are served
	midway func(*subscription) // what others do then
	gone   []string            // those of them that are deleted after that
	later  []machine           // the machines as they are then
	lastly func(*loadbalancer.Config)
	now    map[string]edit
	more   []*v1.Service // never served, because they are refused

	groups []key.Note          // resource groups that the Services are known to have had public IPs in
	left   func(*subscription) // what the predecessor leaves besides
	undone []string            // Services that it failed to delete
	repair []string            // what kaz does about it: parts of the plan's text
	blind  []string            // damages that are right there
}

// edit changes a Service.
type edit func(*v1.Service)

// web is a Service with port 80, unless it is said otherwise.
func web(name string, edits ...edit) *v1.Service {
	s := service(name, tcp(80, 30080+100*int32(name[0]-'a')))
	for _, e := range edits {
		e(s)
	}
	return s
}

func all(edits ...edit) edit {
	return func(s *v1.Service) {
		for _, e := range edits {
			e(s)
		}
	}
}

func note(key, value string) edit {
	return func(s *v1.Service) {
		s.Annotations = maps.Clone(s.Annotations)
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[notePrefix+key] = value
	}
}

func ports(p ...v1.ServicePort) edit { return func(s *v1.Service) { s.Spec.Ports = p } }

func localAt(port int32) edit {
	return func(s *v1.Service) {
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, port
	}
}

func letsIn(r ...string) edit { return func(s *v1.Service) { s.Spec.LoadBalancerSourceRanges = r } }

func pins(address string) edit { return func(s *v1.Service) { s.Spec.LoadBalancerIP = address } }

func labelled(k, v string) edit {
	return func(s *v1.Service) { s.Labels = map[string]string{k: v} }
}

func speaks(protocol string, p v1.ServicePort) v1.ServicePort {
	p.AppProtocol = &protocol
	return p
}

func called(name string, p v1.ServicePort) v1.ServicePort {
	p.Name = name
	return p
}

func sctp(port, node int32) v1.ServicePort {
	return v1.ServicePort{Protocol: v1.ProtocolSCTP, Port: port, NodePort: node}
}

func list(s ...*v1.Service) []*v1.Service { return s }

var (
	inside   = note("azure-load-balancer-internal", "true")
	six      = edit(func(s *v1.Service) { s.Spec.IPFamilies = []v1.IPFamily{v1.IPv6Protocol} })
	dual     = edit(func(s *v1.Service) { s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol, v1.IPv6Protocol} })
	four     = edit(func(s *v1.Service) { s.Spec.IPFamilies = []v1.IPFamily{v1.IPv4Protocol} })
	anchored = note("azure-disable-load-balancer-floating-ip", "true")
	linked   = note("azure-pls-create", "true")
	other    = tcp(81, 30181)
)

func (sc scene) name() string {
	return strings.ReplaceAll(fmt.Sprintf("%03d %s", sc.row, sc.is), " ", "-")
}

func (sc scene) configuration() loadbalancer.Config {
	c := config()
	if sc.config != nil {
		sc.config(&c)
	}
	return c
}

// atEnd is a configuration as it is at last.
func (sc scene) atEnd(c loadbalancer.Config) loadbalancer.Config {
	if sc.lastly != nil {
		sc.lastly(&c)
	}
	return c
}

func (sc scene) atFirst() []machine {
	if sc.machines != nil {
		return sc.machines
	}
	return []machine{{n: 0, set: "np"}, {n: 1, set: "np"}, {n: 2, set: "np"}}
}

func (sc scene) atLast() []machine {
	if sc.later != nil {
		return sc.later
	}
	return sc.atFirst()
}

func nodesOf(machines []machine) []*v1.Node {
	var nodes []*v1.Node
	for _, m := range machines {
		nodes = append(nodes, m.node())
	}
	return nodes
}

// ground is Azure before the first Service.
func (sc scene) ground() *subscription {
	w := newSubscription(0)
	delete(w.docs, azure.ID(vmss).Key())
	for _, m := range sc.atFirst() {
		m.furnish(w)
	}
	for _, doc := range sc.given {
		o := parse(doc)
		w.put(azure.ID(o["id"].(string)), o)
	}
	return w
}

// move makes the machines what they are at last.
func (sc scene) move(w *subscription) {
	known := map[string]bool{}
	for _, m := range sc.atFirst() {
		known[m.name()] = true
	}
	for _, m := range sc.later {
		switch {
		case m.gone:
			delete(w.docs, m.id().Key())
			delete(w.docs, m.nic().Key())
			w.stale = true
		case !known[m.name()]:
			set := w.docs[computeID(m.group, "virtualMachineScaleSets", m.set).Key()]
			m.furnish(w)
			if set != nil {
				w.docs[computeID(m.group, "virtualMachineScaleSets", m.set).Key()] = set
			}
		}
	}
}

// resolved has the address of Service a in place of "@a". It reports false where that
// is not known yet, or the public IP that is named not there.
func resolved(s *v1.Service, w *subscription) (*v1.Service, bool) {
	s = s.DeepCopy()
	known := true
	lookUp := func(v string) string {
		name, is := strings.CutPrefix(v, "@")
		if !is {
			return v
		}
		address := at(w.docs[azure.ID(network+"publicIPAddresses/kubernetes-"+baseOf(service(name))).Key()], "properties", "ipAddress")
		known = known && address != ""
		return address
	}
	s.Spec.LoadBalancerIP = lookUp(s.Spec.LoadBalancerIP)
	for k, v := range s.Annotations {
		s.Annotations[k] = lookUp(v)
	}
	if name := noted(s, "azure-pip-name"); name != "" {
		group := firstText(noted(s, "azure-load-balancer-resource-group"), "rg")
		known = known &&
			w.docs[azure.ID("/subscriptions/s/resourceGroups/"+group+"/providers/Microsoft.Network/publicIPAddresses/"+name).Key()] != nil
	}
	return s, known
}

// serve has the predecessor build the cluster. The Services come in any order that
// their addresses allow.
func (sc scene) serve(t *testing.T, free *rand.Rand) *predecessor {
	p := &predecessor{Config: sc.configuration(), machines: sc.atFirst(), endpoints: sc.endpoints, at: sc.at, azure: sc.ground()}
	p.azure.next = free.IntN(200)
	for _, stage := range [][]*v1.Service{sc.before, sc.have} {
		waiting := slices.Clone(stage)
		free.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
		for len(waiting) > 0 {
			s, known := resolved(waiting[0], p.azure)
			if !known {
				waiting = append(waiting[1:], waiting[0])
				continue
			}
			waiting = waiting[1:]
			if i := slices.IndexFunc(p.services, func(o *v1.Service) bool { return keyOf(o) == keyOf(s) }); i >= 0 {
				p.services[i] = s
			} else {
				p.services = append(p.services, s)
			}
			p.ensure(s)
		}
	}
	if sc.midway != nil {
		p.rest(t)
		sc.midway(p.azure)
	}
	for _, s := range slices.Clone(p.services) {
		if slices.Contains(sc.gone, s.Name) {
			p.remove(s)
		}
	}
	sc.move(p.azure)
	p.machines = sc.atLast()
	p.rest(t)
	return p
}

// rest goes over the Services until there is nothing to write.
func (p *predecessor) rest(t *testing.T) {
	t.Helper()
	for range 5 {
		p.writes = nil
		p.members()
		for _, s := range p.services {
			p.ensure(s)
		}
		if p.writes == nil {
			return
		}
	}
	t.Fatal("the predecessor does not come to rest:\n", strings.Join(p.writes, "\n"))
}

// served is a Service as it was when it was served last.
func (p *predecessor) served(s *v1.Service) *v1.Service {
	if i := slices.IndexFunc(p.services, func(o *v1.Service) bool { return keyOf(o) == keyOf(s) }); i >= 0 {
		return p.services[i]
	}
	return s
}

// input is the input of kaz at the end, and which of the Services it refuses.
func (sc scene) input(p *predecessor) (in loadbalancer.Input, refused map[string]bool) {
	in = loadbalancer.Input{Config: sc.atEnd(sc.configuration()), Complete: true, Endpoints: sc.endpoints, Namespaces: sc.namespaces,
		Nodes: nodesOf(sc.atLast())}
	refused = map[string]bool{}
	for _, s := range sc.have {
		s, _ = resolved(s, p.azure)
		for _, a := range p.addresses(s) {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, v1.LoadBalancerIngress{IP: a})
		}
		if change := sc.now[s.Name]; change != nil {
			change(s)
			refused[keyOf(s)] = sc.repair == nil
		}
		in.Services = append(in.Services, loadbalancer.Service{
			Service: s, Gone: slices.Contains(sc.gone, s.Name) || slices.Contains(sc.undone, s.Name), Groups: sc.groups,
		})
	}
	for _, s := range sc.more {
		s, _ = resolved(s, p.azure)
		refused[keyOf(s)] = true
		in.Services = append(in.Services, loadbalancer.Service{Service: s})
	}
	return in, refused
}

func decide(t *testing.T, in loadbalancer.Input) (plan.Plan, []plan.Problem) {
	t.Helper()
	g, problems, err := loadbalancer.Desired(in)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Diff(in.Have, g)
	if err != nil {
		t.Fatal(err)
	}
	return p, problems
}

// seeds are how often what is free is drawn anew.
func seeds() uint64 {
	if testing.Short() {
		return 2
	}
	return 5
}

// TestTakeOver checks for every scenario that the state of another implementation is taken over without a write. It
// decides all Services together, and each of them alone. Where a defect of that implementation left something, kaz
// repairs it.
func TestTakeOver(t *testing.T) {
	for _, sc := range scenes {
		if sc.none != "" {
			continue
		}
		t.Run(sc.name(), func(t *testing.T) {
			for seed := range seeds() {
				free := rand.New(rand.NewPCG(seed, uint64(sc.row)))
				p := sc.serve(t, free)
				if sc.left != nil {
					sc.left(p.azure)
				}
				answer(p, free)
				if !t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) { sc.takeOver(t, p) }) {
					return
				}
			}
		})
	}
}

func (sc scene) takeOver(t *testing.T, p *predecessor) {
	in, refused := sc.input(p)
	in.Have = p.azure.snapshot()
	if sc.repair != nil {
		sc.repaired(t, p.azure.clone(), in)
		return
	}
	got, problems := decide(t, in)
	nothing(t, "all", got)
	known := in
	known.Have = asked(in)
	got, _ = decide(t, known)
	nothing(t, "all, by what was asked for", got)
	blocked := map[string]bool{}
	for _, one := range problems {
		if !one.Warning {
			blocked[one.Object] = true
			if !refused[one.Object] {
				t.Error(one.Object, one)
			}
		}
	}
	for key := range refused {
		if !blocked[key] {
			t.Error(key, "is not refused")
		}
	}
	status, err := loadbalancer.Status(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range in.Services {
		var want, have []string
		if !s.Gone && !refused[s.Key()] {
			want = p.addresses(s.Service)
		}
		for _, i := range status[s.Key()] {
			have = append(have, i.IP)
		}
		if refused[s.Key()] && have != nil { // it may keep those that it has
			want = p.addresses(p.served(s.Service))
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Error("status of", s.Key(), "(-want +got)\n", d)
		}
	}
	for i, s := range in.Services {
		one := in
		one.Services = []loadbalancer.Service{s}
		for j, o := range in.Services {
			if j != i && !o.Gone {
				one.Others = append(one.Others, o.Service)
			}
		}
		got, _ := decide(t, one)
		nothing(t, s.Key(), got)
		one.Others, one.Complete = nil, false
		got, _ = decide(t, one)
		nothing(t, s.Key()+" without the others", got)
	}
}

// asked is as much of Azure as a decision asks for.
func asked(in loadbalancer.Input) plan.Snapshot {
	all := in.Have
	in.Have = plan.NewSnapshot()
	for range 3 {
		ids, lists := loadbalancer.Needs(in)
		for _, id := range ids {
			if d, ok := all.Get(id); ok {
				in.Have = in.Have.With(d)
			}
		}
		for _, q := range lists {
			in.Have = in.Have.With(all.List(q.Scope, q.Type)...)
		}
	}
	return in.Have
}

func nothing(t *testing.T, owner string, p plan.Plan) {
	t.Helper()
	if !p.Empty() || len(p.Pending) > 0 {
		t.Errorf("%s:\n%s", owner, p)
	}
}

func (sc scene) repaired(t *testing.T, w *subscription, in loadbalancer.Input) {
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	var reported strings.Builder
	for _, r := range rounds {
		reported.WriteString(r.plan.String())
	}
	for _, part := range sc.repair {
		if !strings.Contains(strings.ToLower(reported.String()), strings.ToLower(part)) {
			t.Errorf("not repaired: %s\n%s", part, reported.String())
		}
	}
	if again, err := w.commit(in); err != nil || writes(again) > 0 {
		t.Error("there is more to repair", err, again)
	}
}

// TestGoingBack checks that the predecessor has nothing to write when it is back after kaz.
func TestGoingBack(t *testing.T) {
	for _, sc := range scenes {
		if sc.none != "" || sc.row == 0 {
			continue
		}
		t.Run(sc.name(), func(t *testing.T) {
			p := sc.builtByKaz(t)
			p.backAgain(t, sc)
			if p.writes != nil {
				t.Error("it writes:\n", strings.Join(p.writes, "\n"))
			}
		})
	}
}

// backAgain lets the predecessor go over a cluster once.
func (p *predecessor) backAgain(t *testing.T, sc scene) {
	t.Helper()
	p.writes = nil
	for _, s := range sc.have {
		s, _ = resolved(s, p.azure)
		if slices.Contains(sc.gone, s.Name) || slices.Contains(sc.undone, s.Name) {
			p.remove(s)
		} else {
			p.ensure(s)
		}
	}
}

// builtByKaz is the same scene without a predecessor.
func (sc scene) builtByKaz(t *testing.T) *predecessor {
	w := sc.ground()
	in := loadbalancer.Input{Config: sc.configuration(), Complete: true, Endpoints: sc.endpoints, Namespaces: sc.namespaces,
		Nodes: nodesOf(sc.atFirst())}
	play := func() {
		t.Helper()
		if rounds, err := w.commit(in); err != nil {
			t.Fatal(err, rounds)
		}
	}
	for _, stage := range [][]*v1.Service{sc.before, sc.have} {
		for range 2 { // in the second round the addresses of the first are known
			in.Services = nil
			for _, s := range stage {
				if s, known := resolved(s, w); known {
					in.Services = append(in.Services, loadbalancer.Service{Service: s})
				}
			}
			if in.Services != nil {
				play()
			}
		}
	}
	if sc.midway != nil {
		sc.midway(w)
	}
	live := in.Services
	in.Config = sc.atEnd(in.Config)
	p := &predecessor{Config: in.Config, machines: sc.atLast(), endpoints: sc.endpoints, at: sc.at, azure: w}
	in.Services = nil
	for _, s := range live {
		s.Gone = slices.Contains(sc.gone, s.Name) || slices.Contains(sc.undone, s.Name)
		if !s.Gone {
			p.services = append(p.services, s.Service)
		}
		if change := sc.now[s.Name]; change != nil && sc.repair == nil {
			s.Service = s.DeepCopy()
			change(s.Service)
		}
		in.Services = append(in.Services, s)
	}
	for _, s := range sc.more {
		s, _ = resolved(s, w)
		in.Services = append(in.Services, loadbalancer.Service{Service: s})
	}
	sc.move(w)
	in.Nodes = nodesOf(sc.atLast())
	play()
	return p
}

// TestTakeOverAndDelete checks that kaz deletes everything that belonged to the Services, and nothing else, when all of
// them are deleted after a take-over.
func TestTakeOverAndDelete(t *testing.T) {
	stays := map[string]string{ // by the scene's name
		"079-preset-pools":                            "the last frontend stays where pools are preset",
		"079-preset-pools-and-no-floating-IP":         "the last frontend stays where pools are preset",
		"080-outbound-rule-at-a-frontend":             "the frontend is foreign",
		"081-NAT-rule-at-a-port":                      "the frontend is foreign",
		"081-NAT-rule-for-several-machines":           "the frontend is foreign",
		"081-NAT-rule-for-several-machines-at-a-port": "the frontend is foreign",
		"085-Basic-left":                              "a load balancer of a SKU that is no more goes as a whole",
		"094-private-link-of-others":                  "the frontend is foreign",
	}
	for _, sc := range scenes {
		if sc.none != "" || stays[sc.name()] != "" {
			continue
		}
		t.Run(sc.name(), func(t *testing.T) {
			free := rand.New(rand.NewPCG(7, uint64(sc.row)))
			p := sc.serve(t, free)
			if sc.left != nil {
				sc.left(p.azure)
			}
			if lb := p.azure.docs[azure.ID(lbID).Key()]; lb != nil && named(children(sub(lb, "properties"), "probes"), "theirs") == nil {
				addForeignParts(p.azure)
			}
			answer(p, free)
			before := pieces(p.azure)
			in, _ := sc.input(p)
			for i := range in.Services {
				in.Services[i].Gone = true
			}
			if rounds, err := p.azure.commit(in); err != nil {
				t.Fatal(err, rounds)
			}
			after := pieces(p.azure)
			for what, is := range after {
				if is.ours {
					t.Error("it is left: ", what, is.text)
				}
			}
			for what, was := range before {
				if !was.ours && after[what].text != was.text {
					t.Errorf("%s was\n%s\nand is\n%s", what, was.text, after[what].text)
				}
			}
		})
	}
}

// piece is something in Azure that belongs to the cluster's Services, or to others.
type piece struct {
	ours bool
	text string
}

// pieces are what there is in load balancers and the security group, public IPs and private
// link services. The cluster's pools are neither's: they stay where a load balancer does.
func pieces(w *subscription) map[string]piece {
	w.settle()
	all := map[string]piece{}
	for key, doc := range w.docs {
		o, id := parse(string(text(doc))), azure.ID(key)
		props := sub(o, "properties")
		delete(o, "etag")
		switch {
		case id.Is("Microsoft.Network/loadBalancers"):
			for _, kind := range []string{"frontendIPConfigurations", "backendAddressPools", "loadBalancingRules", "probes",
				"outboundRules", "inboundNatRules", "inboundNatPools"} {
				for _, c := range children(props, kind) {
					delete(c, "id") // Azure's to spell
					if kind == "loadBalancingRules" {
						fill(sub(c, "properties"), object{"enableTcpReset": false})
					}
					if name := strings.ToLower(nameOf(c)); kind != "backendAddressPools" || !strings.HasPrefix(name, "kubernetes") &&
						!strings.HasPrefix(name, "default-") {
						all[key+"/"+kind+"/"+name] = piece{ownName(nameOf(c)), string(text(c))}
					}
				}
			}
		case id.Is("Microsoft.Network/networkSecurityGroups"):
			for _, r := range children(props, "securityRules") {
				delete(r, "id")
				legacy := ownName(nameOf(r)) || nameOf(r) == "shared-TCP-80-Internet" || nameOf(r) == "shared-TCP-80-deny_all"
				all[key+"/"+nameOf(r)] = piece{legacy || managedRule(r), string(text(r))}
			}
		case id.Is("Microsoft.Network/publicIPAddresses"):
			delete(props, "ipConfiguration")
			all[key] = piece{tagOf(o, serviceTag) != "", string(text(o))}
		case id.Is(privateLinks):
			all[key] = piece{tagOf(o, ownerTag) != "", string(text(o))}
		}
	}
	return all
}

// TestTakeOverOfMixtures checks that clusters with Services of many scenarios at once are taken over, and given back,
// too.
func TestTakeOverOfMixtures(t *testing.T) {
	n := 40
	if testing.Short() {
		n = 10
	}
	for seed := range uint64(n) {
		t.Run(fmt.Sprint("seed-", seed), func(t *testing.T) {
			free := rand.New(rand.NewPCG(seed, 105))
			sc := mixture(free)
			mixed := sc
			p := sc.serve(t, free)
			answer(p, free)
			sc.takeOver(t, p)
			if t.Failed() {
				return
			}
			sc.workOn(t, p)
			if p.backAgain(t, sc); p.writes != nil {
				t.Error("after a change it writes:\n", strings.Join(p.writes, "\n"))
			}
			p = mixed.builtByKaz(t)
			if p.backAgain(t, mixed); p.writes != nil {
				t.Error("it writes:\n", strings.Join(p.writes, "\n"))
			}
		})
	}
}

// workOn has kaz serve one more Service in the predecessor's cluster, and delete one.
func (sc *scene) workOn(t *testing.T, p *predecessor) {
	in, _ := sc.input(p)
	in.Services[0].Gone = true
	added := web("y", ports(tcp(80, 32000), udp(80, 32001)))
	in.Services = append(in.Services, loadbalancer.Service{Service: added})
	if rounds, err := p.azure.commit(in); err != nil {
		t.Fatal(err, rounds)
	}
	p.services = slices.DeleteFunc(p.services, func(s *v1.Service) bool { return s.Name == in.Services[0].Name })
	p.services = append(p.services, added)
	sc.gone = []string{in.Services[0].Name}
	sc.have = append(slices.Clone(sc.have), added)
}

// mixture is a cluster of the Services of some scenes that do not need anything else.
func mixture(free *rand.Rand) scene {
	configs := []func(*loadbalancer.Config){nil, byIP, sharedProbes, tagged,
		func(c *loadbalancer.Config) { c.DisableOutboundSNAT, c.Zones = true, nil }}
	mix := scene{config: configs[free.IntN(len(configs))]}
	var c loadbalancer.Config
	if mix.config != nil {
		mix.config(&c)
	}
	linked := func(s *v1.Service) bool { return switched(s, "azure-pls-create") }
	for _, i := range free.Perm(len(scenes)) {
		if c.PoolByIP && slices.ContainsFunc(scenes[i].have, linked) {
			continue // Azure has no private link service before pools of addresses
		}
		if sc := scenes[i]; sc.simple() {
			mix.have = append(mix.have, sc.have...)
		}
		if len(mix.have) > 8 {
			break
		}
	}
	for i, s := range mix.have {
		s = s.DeepCopy()
		s.Name = string(rune('a' + i))
		s.UID = service(s.Name).UID
		for j := range s.Spec.Ports {
			s.Spec.Ports[j].NodePort = 30000 + 100*int32(i) + int32(j)
		}
		mix.have[i] = s
	}
	return mix
}

// simple reports whether a scene's Services can be anywhere, beside any others.
func (sc scene) simple() bool {
	if sc.none != "" || sc.row == 0 || sc.config != nil || sc.given != nil || sc.machines != nil || sc.later != nil || sc.midway != nil ||
		sc.gone != nil || sc.now != nil || sc.more != nil || sc.left != nil || sc.undone != nil || sc.repair != nil {
		return false
	}
	return !slices.ContainsFunc(sc.have, func(s *v1.Service) bool {
		return s.Spec.LoadBalancerIP != "" || noted(s, "azure-load-balancer-ipv4") != "" || noted(s, "azure-pip-name") != "" ||
			// Where several Services send packets to nodes, the predecessor writes at every turn (D4).
			switched(s, "azure-disable-load-balancer-floating-ip") && switched(s, "azure-deny-all-except-load-balancer-source-ranges")
	})
}

// TestTakeOverHasEveryRow checks that every scenario is here, or that a reason says why it leaves nothing.
func TestTakeOverHasEveryRow(t *testing.T) {
	const rows = 104
	found := map[int]bool{}
	reported := map[string]bool{}
	for _, sc := range scenes {
		if sc.row > 0 {
			found[sc.row] = true
		}
		if sc.row < 0 || sc.row > rows || reported[sc.name()] {
			t.Error("no such row, or reported twice:", sc.name())
		}
		reported[sc.name()] = true
		if (sc.none != "") != (len(sc.have)+len(sc.before) == 0) {
			t.Error("a scene has Services, or a reason for having none:", sc.name())
		}
	}
	for row := 1; row <= rows; row++ {
		if !found[row] {
			t.Error("no scene for row", row)
		}
	}
}

// --- what is free

// answer changes a state as Azure answers and as histories differ: nothing of it requires a write.
func answer(p *predecessor, free *rand.Rand) {
	w := p.azure
	coin := func() bool { return free.IntN(2) == 0 }
	shuffle := func(o object, key string) {
		if l, is := o[key].([]any); is {
			free.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.docs)) {
		o, id := w.docs[key], azure.ID(key)
		props := sub(o, "properties")
		tagged := false
		switch {
		case id.Is("Microsoft.Network/loadBalancers"):
			for _, kind := range []string{"frontendIPConfigurations", "backendAddressPools", "loadBalancingRules", "probes"} {
				shuffle(props, kind)
				for _, c := range children(props, kind) {
					answerChild(c, kind, free)
				}
			}
			tagged = true
		case id.Is("Microsoft.Network/publicIPAddresses"):
			shuffle(o, "zones")
			if len(p.SystemTags) == 0 && tagOf(o, serviceTag) != "" && coin() {
				tags := sub(o, "tags")
				both := coin()
				for name, legacy := range legacyTags {
					if v, is := tags[name]; is {
						tags[legacy] = v
						if !both {
							delete(tags, name)
						}
					}
				}
			}
			if coin() {
				delete(o, "zones") // from a time when the region had none
			}
			props["ddosSettings"] = object{"protectionMode": "VirtualNetworkInherited"}
			if dns, is := props["dnsSettings"].(object); is {
				fill(dns, object{"fqdn": "www.westeurope.cloudapp.azure.com", "reverseFqdn": "www.example.com."})
			}
			if list := tagOf(o, serviceTag); coin() && sub(o, "tags")[serviceTag] == list {
				sub(o, "tags")[serviceTag] = strings.ReplaceAll(list, ",", " , ")
			}
			tagged = tagOf(o, serviceTag) != ""
		case id.Is("Microsoft.Network/networkSecurityGroups"):
			shuffle(props, "securityRules")
			for _, r := range children(props, "securityRules") {
				if coin() {
					sub(r, "properties")["description"] = "foreign"
				}
			}
			tagged = true
		case id.Is("Microsoft.Network/privateLinkServices"):
			shuffle(props, "ipConfigurations")
			shuffle(props, "fqdns")
			shuffle(sub(props, "visibility"), "subscriptions")
			shuffle(sub(props, "autoApproval"), "subscriptions")
			if coin() {
				fill(props, object{"fqdns": []any{}, "visibility": object{"subscriptions": []any{}},
					"autoApproval": object{"subscriptions": []any{}}})
			}
			props["alias"] = "pls.1234.westeurope.azure.privatelinkservice"
			tagged = true
		}
		if tagged && len(p.SystemTags) == 0 && coin() {
			sub(o, "tags")["policy"] = "theirs"
		}
	}
	spell := []func(string) string{
		func(id string) string { return id },
		func(id string) string {
			return strings.Replace(id, "/subscriptions/s/resourceGroups/rg/", "/subscriptions/S/resourceGroups/RG/", 1)
		},
		func(id string) string { return strings.Replace(id, "/resourceGroups/", "/resourcegroups/", 1) },
		func(id string) string {
			return strings.Replace(id, "/providers/Microsoft.Network/", "/providers/microsoft.network/", 1)
		},
	}
	for _, key := range slices.Sorted(maps.Keys(w.docs)) {
		w.docs[key] = spelled(w.docs[key], func(id string) string { return spell[free.IntN(len(spell))](id) }).(object)
	}
	w.stale = true
}

func answerChild(c object, kind string, free *rand.Rand) {
	coin := func() bool { return free.IntN(2) == 0 }
	props := sub(c, "properties")
	props["unknown"] = object{"value": 1.5}
	switch kind {
	case "frontendIPConfigurations":
		if props["subnet"] == nil {
			return
		}
		if coin() {
			props["privateIPAllocationMethod"] = "Static" // the address was in the status when it was made
		}
		if coin() {
			fill(props, object{"privateIPAddressVersion": "IPv4"})
		}
		if coin() {
			delete(c, "zones")
		}
	case "probes":
		props["numberOfProbes"] = []any{1.0, props["probeThreshold"]}[free.IntN(2)]
	case "loadBalancingRules":
		if props["disableOutboundSnat"] == false && coin() {
			delete(props, "disableOutboundSnat")
		}
		if props["enableTcpReset"] == false && coin() {
			delete(props, "enableTcpReset")
		}
		if props["idleTimeoutInMinutes"] == 4.0 && coin() {
			delete(props, "idleTimeoutInMinutes")
		}
		if props["protocol"] == "Udp" && coin() {
			props["enableTcpReset"] = true // older versions said it of all
		}
	case "backendAddressPools":
		l, _ := props["loadBalancerBackendAddresses"].([]any)
		free.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
		for i := range l {
			fill(sub(l[i].(object), "properties"), object{"adminState": "None", "provisioningState": "Succeeded"})
			if coin() {
				l[i].(object)["name"] = fmt.Sprintf("%08d-1111-2222-3333-444455556666", i) // Azure generates a missing name
			}
		}
		if members := children(props, "backendIPConfigurations"); len(l) == 0 && len(members) > 0 {
			props["loadBalancerBackendAddresses"] = []any{object{"name": "rg_nic_ipconfig",
				"properties": object{"networkInterfaceIPConfiguration": members[0]}}}
		}
	}
}

// spelled writes the ids in a document in another way. Names keep theirs.
func spelled(v any, how func(string) string) any {
	switch v := v.(type) {
	case object:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			v[k] = spelled(v[k], how)
		}
	case []any:
		for i := range v {
			v[i] = spelled(v[i], how)
		}
	case string:
		if strings.HasPrefix(v, "/subscriptions/") {
			return how(v)
		}
	}
	return v
}

// --- that the tests can fail

// damages are what can be wrong with a state. Each reports whether there was anything
// of the kind.
var damages = map[string]func(*subscription) bool{
	"rule: backend port": damageOwn("loadBalancingRules", func(p object) { p["backendPort"] = p["backendPort"].(float64) + 1 }),
	"rule: floating IP":  damageOwn("loadBalancingRules", func(p object) { p["enableFloatingIP"] = p["enableFloatingIP"] != true }),
	"rule: distribution": damageOwn("loadBalancingRules", func(p object) { p["loadDistribution"] = "SourceIPProtocol" }),
	"rule: idle timeout": damageOwn("loadBalancingRules", func(p object) { p["idleTimeoutInMinutes"] = 29.0 }),
	"rule: outbound":     damageOwn("loadBalancingRules", func(p object) { p["disableOutboundSnat"] = p["disableOutboundSnat"] != true }),
	"rule: probe":        damageOwn("loadBalancingRules", func(p object) { p["probe"] = ref(lbID + "/probes/none") }),
	"rule: gone":         damageList("loadBalancingRules", 0),
	"rule: one more":     damageList("loadBalancingRules", 2),
	"probe: port":        damageOwn("probes", func(p object) { p["port"] = 1.0 }),
	"probe: interval":    damageOwn("probes", func(p object) { p["intervalInSeconds"] = 77.0 }),
	"probe: threshold":   damageOwn("probes", func(p object) { p["probeThreshold"] = 9.0 }),
	"probe: path":        damageOwn("probes", func(p object) { p["requestPath"] = "/other" }),
	"probe: gone":        damageList("probes", 0),
	"frontend: gone":     damageList("frontendIPConfigurations", 0),
	"security: elsewhere": damageSecurity(func(p object) {
		p["destinationAddressPrefix"], p["destinationAddressPrefixes"] = "9.9.9.9",
			[]any{}
	}),
	"security: sources": damageSecurity(func(p object) {
		p["destinationAddressPrefix"] = nil
		p["destinationAddressPrefixes"] = []any{"9.9.9.9", "9.9.9.8"}
	}),
	"security: gone": func(w *subscription) bool {
		nsg := w.docs[azure.ID(nsgID).Key()]
		rules := children(sub(nsg, "properties"), "securityRules")
		setList(nsg, "securityRules", slices.DeleteFunc(slices.Clone(rules), managedRule))
		return slices.ContainsFunc(rules, managedRule)
	},
	"public IP: owner": damageDoc("publicIPAddresses", func(o object) { sub(o, "tags")[serviceTag] = "other/x" }),
	"public IP: SKU":   damageDoc("publicIPAddresses", func(o object) { sub(o, "sku")["name"] = "Basic" }),
	"private link: proxy": damageDoc("privateLinkServices",
		func(o object) { p := sub(o, "properties"); p["enableProxyProtocol"] = p["enableProxyProtocol"] != true }),
	"private link: names": damageDoc("privateLinkServices", func(o object) { sub(o, "properties")["fqdns"] = []any{"not.asked.for"} }),
	"private link: subscriptions": damageDoc("privateLinkServices",
		func(o object) { sub(o, "properties")["visibility"] = object{"subscriptions": []any{"x"}} }),
	"private link: subnet": damageDoc("privateLinkServices", func(o object) { sub(o, "properties")["ipConfigurations"] = []any{} }),
	"member: gone":         damageMember,
}

func ownName(name string) bool {
	return len(name) >= 32 && strings.HasSuffix(name[:32], "11112222333344445555666") || name == sharedProbe
}

func damageOwn(kind string, how func(props object)) func(*subscription) bool {
	return func(w *subscription) bool {
		return eachBalancer(w, kind, func(props object, i int) { how(sub(children(props, kind)[i], "properties")) })
	}
}

// damageList has the first of a kind 0 or 2 times.
func damageList(kind string, times int) func(*subscription) bool {
	return func(w *subscription) bool {
		return eachBalancer(w, kind, func(props object, i int) {
			l := props[kind].([]any)
			if times == 0 {
				props[kind] = slices.Delete(l, i, i+1)
				return
			}
			again := parse(string(text(l[i])))
			again["name"] = nameOf(again)[:32] + "-TCP-9"
			sub(again, "properties")["frontendPort"] = 9.0
			props[kind] = append(l, again)
		})
	}
}

func eachBalancer(w *subscription, kind string, how func(props object, i int)) bool {
	for _, key := range slices.Sorted(maps.Keys(w.docs)) {
		if !azure.ID(key).Is("Microsoft.Network/loadBalancers") {
			continue
		}
		props := sub(w.docs[key], "properties")
		if i := slices.IndexFunc(children(props, kind), func(o object) bool { return ownName(nameOf(o)) }); i >= 0 {
			how(props, i)
			w.docs[key]["etag"] = "stale"
			w.stale = true
			return true
		}
	}
	return false
}

func damageSecurity(how func(props object)) func(*subscription) bool {
	return func(w *subscription) bool {
		for _, r := range children(sub(w.docs[azure.ID(nsgID).Key()], "properties"), "securityRules") {
			if managedRule(r) {
				how(sub(r, "properties"))
				return true
			}
		}
		return false
	}
}

func damageDoc(kind string, how func(object)) func(*subscription) bool {
	return func(w *subscription) bool {
		for _, key := range slices.Sorted(maps.Keys(w.docs)) {
			o := w.docs[key]
			if azure.ID(key).Is("Microsoft.Network/"+kind) && (tagOf(o, serviceTag) != "" || tagOf(o, ownerTag) != "") {
				how(o)
				return true
			}
		}
		return false
	}
}

// damageMember removes a member from a pool.
func damageMember(w *subscription) bool {
	for _, key := range slices.Sorted(maps.Keys(w.docs)) {
		for _, v6 := range []bool{false, true} {
			if c := ipConfiguration(w.docs[key], v6); len(children(c, "loadBalancerBackendAddressPools")) > 0 &&
				!strings.HasSuffix(key, "/np") {
				c["loadBalancerBackendAddressPools"] = []any{}
				w.docs[key]["etag"] = "stale"
				w.stale = true
				return true
			}
		}
		for _, pool := range children(sub(w.docs[key], "properties"), "backendAddressPools") {
			if l, _ := sub(pool, "properties")["loadBalancerBackendAddresses"].([]any); len(l) > 1 {
				sub(pool, "properties")["loadBalancerBackendAddresses"] = l[1:]
				return true
			}
		}
	}
	return false
}

// TestTakeOverCanFail checks that kaz sees whatever is wrong with a state, and that the predecessor sees it, too.
func TestTakeOverCanFail(t *testing.T) {
	for nth, sc := range scenes {
		if sc.none != "" || sc.repair != nil {
			continue
		}
		t.Run(sc.name(), func(t *testing.T) {
			p := sc.serve(t, rand.New(rand.NewPCG(1, 1)))
			in, _ := sc.input(p)
			in.Services = nil
			for _, s := range p.services {
				in.Services = append(in.Services, loadbalancer.Service{Service: s})
			}
			in.Have = p.azure.snapshot()
			right, _ := decide(t, in)
			nothing(t, "as it is", right)
			applied := 0
			for i, what := range slices.Sorted(maps.Keys(damages)) {
				if testing.Short() && (nth+i)%4 != 0 {
					continue // each with a quarter of the scenes
				}
				w := p.azure.clone()
				if !damages[what](w) {
					continue
				}
				if slices.Contains(sc.blind, what) {
					continue
				}
				applied++
				in.Have = w.snapshot()
				if got, _ := decide(t, in); got.Empty() {
					t.Error("kaz does not see: ", what)
				}
				judge := *p
				judge.azure, judge.writes = w, nil
				judge.members()
				for _, s := range p.services {
					judge.ensure(s)
				}
				if judge.writes == nil {
					t.Error("the predecessor does not see: ", what)
				}
			}
			switch {
			case len(p.services) == 0:
				sc.seesWhatIsLeft(t)
			case applied == 0 && !testing.Short():
				t.Error("nothing can be wrong with it")
			}
		})
	}
}

// seesWhatIsLeft: where a scene ends with nothing, what was there before is not nothing.
func (sc scene) seesWhatIsLeft(t *testing.T) {
	gone := sc.gone
	sc.gone, sc.midway = nil, nil
	p := sc.serve(t, rand.New(rand.NewPCG(1, 1)))
	sc.gone = gone
	in, _ := sc.input(p)
	in.Have = p.azure.snapshot()
	if got, _ := decide(t, in); got.Empty() {
		t.Error("kaz does not see that they are gone")
	}
	services := p.services
	for _, s := range slices.Clone(services) {
		if slices.Contains(gone, s.Name) {
			p.writes = nil
			if p.remove(s); p.writes == nil {
				t.Error("the predecessor does not see that they are gone")
			}
		}
	}
}
