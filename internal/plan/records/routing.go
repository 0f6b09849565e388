package records

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
)

// Properties of endpoints that share a name through Traffic Manager. Annotations external-dns.kubernetes.io/webhook-... set them.
const (
	policyProperty = "webhook/policy"
	probeProperty  = "webhook/probe"
	mergePolicy    = "merge" // without Traffic Manager, which is the default
)

// Types of Traffic Manager.
const (
	ProfileType  = "Microsoft.Network/trafficManagerProfiles"
	endpointKind = "externalEndpoints"
)

// Routing is how Traffic Manager routes to the contribution of a cluster.
type Routing struct {
	Policy string `json:"policy"`
	Probe  string `json:"probe"` // PROTOCOL:PORT/PATH
	// Value is the weight, the priority, the location or the geographic codes, separated by commas.
	Value string `json:"value"`
}

func (r *Routing) equal(other *Routing) bool {
	if r == nil || other == nil {
		return r == other
	}
	return *r == *other
}

// policy is a way in which Traffic Manager routes.
type policy struct {
	method   string // of Traffic Manager
	property string // with the value of a cluster
	initial  string // the value without the property, "" if it must be there
	// exclusive is true if no two clusters may have the same value.
	exclusive bool
	check     func(value string) error
	set       func(properties map[string]any, value string)
}

var policies = map[string]policy{
	"weighted": {method: "Weighted", property: "webhook/weight", initial: "1", check: oneToThousand, set: setNumber("weight")},
	"priority": {method: "Priority", property: "webhook/priority", exclusive: true, check: oneToThousand, set: setNumber("priority")},
	"performance": {method: "Performance", property: "webhook/location", check: anyText, set: func(p map[string]any, value string) {
		p["endpointLocation"] = value
	}},
	"geo": {method: "Geographic", property: "webhook/geo", exclusive: true, check: anyText, set: func(p map[string]any, value string) {
		p["geoMapping"] = strings.Split(value, ",")
	}},
}

func oneToThousand(value string) error {
	if n, err := strconv.Atoi(value); err != nil || n < 1 || n > 1000 || strconv.Itoa(n) != value {
		return fmt.Errorf("%q: must be a number from 1 to 1000", value)
	}
	return nil
}

func anyText(value string) error {
	if value == "" || strings.ContainsAny(value, "\n\"\\") {
		return fmt.Errorf("%q: must be there, without quotes and backslashes", value)
	}
	return nil
}

func setNumber(name string) func(map[string]any, string) {
	return func(p map[string]any, value string) {
		n, err := strconv.Atoi(value)
		if err == nil {
			p[name] = n
		}
	}
}

// readRouting returns what the properties of an endpoint say, nil for a set that answers the targets of all clusters.
func (e Endpoint) readRouting() (*Routing, error) {
	name, _ := e.property(policyProperty)
	if name == "" || name == mergePolicy || !aliasable(e.Type) {
		return nil, nil
	}
	p, ok := policies[name]
	if !ok {
		return nil, fmt.Errorf("annotation webhook-policy %q: must be %s or %s", name, mergePolicy,
			strings.Join(slices.Sorted(maps.Keys(policies)), ", "))
	}
	r := &Routing{Policy: name, Value: p.initial}
	if value, ok := e.property(p.property); ok {
		r.Value = trimmed(value)
	}
	if err := p.check(r.Value); err != nil {
		return nil, fmt.Errorf("annotation %s %w", strings.ReplaceAll(p.property, "/", "-"), err)
	}
	probe, _ := e.property(probeProperty)
	if _, err := monitor(probe); err != nil {
		return nil, fmt.Errorf("annotation webhook-probe %w", err)
	}
	r.Probe = probe
	return r, nil
}

// trimmed is a list without the blanks beside its commas.
func trimmed(list string) string {
	fields := strings.Split(list, ",")
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	return strings.Join(fields, ",")
}

// check returns why routing that was stored cannot be used, such as that of a later version.
func (r *Routing) check() error {
	if r == nil {
		return nil
	}
	p, ok := policies[r.Policy]
	if !ok {
		return fmt.Errorf("policy %q is unknown", r.Policy)
	}
	_, err := monitor(r.Probe)
	return errors.Join(err, p.check(r.Value))
}

// alike reports whether two clusters can share a profile.
func (r *Routing) alike(other *Routing) bool {
	return r.Policy == other.Policy && r.Probe == other.Probe
}

// properties returns the properties of an endpoint, in a fixed order.
func (r *Routing) properties() []Property {
	if r == nil {
		return nil
	}
	return []Property{{policyProperty, r.Policy}, {probeProperty, r.Probe}, {policies[r.Policy].property, r.Value}}
}

// monitor returns the monitorConfig of a probe.
func monitor(probe string) (map[string]any, error) {
	protocol, rest, _ := strings.Cut(probe, ":")
	number, path, hasPath := strings.Cut(rest, "/")
	port, err := strconv.ParseUint(number, 10, 16)
	web := protocol == "HTTP" || protocol == "HTTPS"
	if err != nil || port == 0 || !web && (protocol != "TCP" || hasPath) {
		return nil, fmt.Errorf("%q: must be HTTP:PORT/PATH, HTTPS:PORT/PATH or TCP:PORT, such as HTTPS:443/healthz", probe)
	}
	config := map[string]any{"protocol": protocol, "port": port}
	if web {
		config["path"] = "/" + path
	}
	return config, nil
}

// admitRouting admits how Traffic Manager routes to a contribution. What it cannot reach is answered without it.
func (a *admitted) admitRouting() {
	e := &a.endpoint
	r, err := e.readRouting()
	e.ProviderSpecific = nil
	switch {
	case err != nil:
		a.refuse(Invalid, "%v", err)
		return
	case r == nil:
		return
	case a.zone.Private:
		a.note(Unsupported, "Traffic Manager does not serve private zones: all clusters are answered")
		return
	}
	for _, target := range e.Targets {
		if address, err := netip.ParseAddr(target); err == nil && !reachable(address) {
			a.note(Unsupported, "Traffic Manager cannot reach %s: all clusters are answered", target)
			return
		}
	}
	if len(e.Targets) > 1 {
		e.Targets = slices.Sorted(slices.Values(e.Targets))[:1]
		a.note(Truncated, "Traffic Manager has one target for each cluster: the first one in alphabetical order is %s", e.Targets[0])
	}
	e.ProviderSpecific = r.properties()
}

func reachable(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !netip.MustParsePrefix("100.64.0.0/10").Contains(a)
}

// routed reports whether Traffic Manager answers for the contributions.
func (s Shares) routed() bool {
	for _, c := range s {
		if c.Routing != nil {
			return true
		}
	}
	return false
}

// checkRouting returns why contributions do not fit each other.
func (s Shares) checkRouting() error {
	ids := slices.Sorted(maps.Keys(s))
	for i, id := range ids {
		for _, other := range ids[:i] {
			if err := fit(s[other], s[id]); err != nil {
				return fmt.Errorf("%w: %w", errConflict, err)
			}
		}
	}
	return nil
}

func fit(a, b Contribution) error {
	switch {
	case (a.Routing == nil) != (b.Routing == nil):
		return fmt.Errorf("clusters %s and %s have different values of webhook-policy", a.Cluster, b.Cluster)
	case a.Routing == nil:
		return nil
	case !a.Routing.alike(b.Routing):
		return fmt.Errorf("clusters %s and %s have different values of webhook-policy or webhook-probe: %s %s, and %s %s", a.Cluster,
			b.Cluster, a.Routing.Policy, a.Routing.Probe, b.Routing.Policy, b.Routing.Probe)
	}
	p := policies[a.Routing.Policy]
	for value := range strings.SplitSeq(a.Routing.Value, ",") {
		if p.exclusive && slices.Contains(strings.Split(b.Routing.Value, ","), value) {
			return fmt.Errorf("clusters %s and %s both have %s=%s", a.Cluster, b.Cluster, p.property, value)
		}
	}
	return nil
}

// Write is a write of Traffic Manager that goes with the write of a record set. A profile that has endpoints is neither overwritten nor
// deleted, and none that is not of the record.
type Write struct {
	Verb azure.Verb
	ID   azure.ID // of a profile or an endpoint
	Body azure.Document
	// Record is the full name of the record that the profile answers, as its tag [RecordTag] has it.
	Record string
	// Replace overwrites a profile with endpoints too: its body has all of them.
	Replace bool
	// Ensure leaves an endpoint that is as it is to be.
	Ensure bool
	// New marks an endpoint that did not exist. It is deleted again if Azure refuses the record set.
	New bool
}

// RecordTag is the tag of a profile with the full name of its record.
const RecordTag = "kaz-record"

func (w Write) String() string {
	condition := ""
	switch {
	case w.ID.Is(ProfileType) && !w.Replace:
		condition = " if without endpoints"
	case w.Ensure:
		condition = " if need be"
	}
	return string(w.Verb) + " " + w.ID.Type() + " " + w.ID.Name() + condition
}

// profile returns the id of the Traffic Manager profile of a record set. Its name is that of a domain, so it is the same for all clusters,
// and for no other record set.
func (c change) profile() azure.ID {
	a := c.any()
	key := strings.ToLower(string(a.zone.set(a.endpoint.Type, a.relative)))
	sum := sha256.Sum256([]byte(key))
	label, _, _ := strings.Cut(a.relative, ".")
	label = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, label)
	const longest = 30
	group := c.traffic
	if group == "" {
		group = azure.GroupID(a.zone.ID.Subscription(), a.zone.ID.Group())
	}
	name := "kaz-" + strings.Trim(label[:min(len(label), longest)], "-") + "-" + strings.ToLower(a.endpoint.Type) + "-" +
		hex.EncodeToString(sum[:5])
	return group.Resource(ProfileType, strings.ReplaceAll(name, "--", "-"))
}

// trafficWrites returns the writes before and after that of a record set with contributions that change. What is taken away goes first,
// because only the record set says that it is there.
func (c change) trafficWrites(old, now Shares) (before, after []Write, err error) {
	profile, record := c.profile(), normalName(c.any().endpoint.Name)
	if before, err = c.endpointWrites(profile, old, now); err != nil {
		return nil, nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(old)) {
		if old[id].Routing != nil && now[id].Routing == nil {
			before = append(before, Write{Verb: azure.Delete, ID: profile.Child(endpointKind, id), Record: record})
		}
	}
	if old.routed() && !now.routed() {
		after = append(after, Write{Verb: azure.Delete, ID: profile, Record: record})
	}
	return before, after, nil
}

// endpointWrites returns the writes of a profile and of the endpoints that change. If the policy or the probe of all changes, which a
// cluster alone can do, one write replaces the profile with its endpoints.
func (c change) endpointWrites(profile azure.ID, old, now Shares) (writes []Write, err error) {
	record := normalName(c.any().endpoint.Name)
	for _, id := range slices.Sorted(maps.Keys(now)) {
		one := now[id]
		if one.Routing == nil || old[id].equal(one) {
			continue
		}
		if was := old[id].Routing; was != nil && !was.alike(one.Routing) {
			body, err := profileBody(profile, c.any(), one, now)
			return []Write{{Verb: azure.Put, ID: profile, Body: body, Record: record, Replace: true}}, err
		}
		if len(writes) == 0 {
			body, err := profileBody(profile, c.any(), one, nil)
			if err != nil {
				return nil, err
			}
			writes = append(writes, Write{Verb: azure.Put, ID: profile, Body: body, Record: record})
		}
		body, err := json.Marshal(map[string]any{"properties": endpointProperties(one)})
		if err != nil {
			return nil, err
		}
		writes = append(writes, Write{
			Verb: azure.Put, ID: profile.Child(endpointKind, id), Body: body, Record: record, New: old[id].Routing == nil,
		})
	}
	return writes, nil
}

// profileBody returns the document of a profile. Without endpoints, it leaves those that the profile has.
func profileBody(id azure.ID, a *admitted, c Contribution, endpoints Shares) (azure.Document, error) {
	config, err := monitor(c.Routing.Probe)
	if err != nil {
		return nil, err
	}
	properties := map[string]any{
		"profileStatus": "Enabled", "trafficRoutingMethod": policies[c.Routing.Policy].method, "monitorConfig": config,
		"dnsConfig": map[string]any{"relativeName": id.Name(), "ttl": c.TTL},
	}
	var all []any
	for _, name := range slices.Sorted(maps.Keys(endpoints)) {
		all = append(all, map[string]any{
			"name": name, "type": ProfileType + "/" + endpointKind, "properties": endpointProperties(endpoints[name]),
		})
	}
	if len(all) > 0 {
		properties["endpoints"] = all
	}
	return json.Marshal(map[string]any{
		"location": "global", "properties": properties,
		"tags": map[string]string{RecordTag: normalName(a.endpoint.Name), "kaz-zone": string(a.zone.ID)},
	})
}

func endpointProperties(c Contribution) map[string]any {
	properties := map[string]any{"target": c.Targets[0], "endpointStatus": "Enabled"}
	policies[c.Routing.Policy].set(properties, c.Routing.Value)
	return properties
}

// abandoned returns the writes that take away what Traffic Manager may have of a name that a cluster claimed and does not have. A set
// identifier that any cluster has in a record set of the name stays.
func (s Snapshot) abandoned(name, id string, o Options) (all []Write) {
	zone, relative, ok := find(s.Zones, name)
	if !ok || zone.Private {
		return nil
	}
	for _, t := range types {
		if _, taken := s.Sets[keyOf(zone, relative, t.name)].Shares[id]; taken || !aliasable(t.name) {
			continue
		}
		a := &admitted{endpoint: Endpoint{Name: name, Type: t.name}, zone: zone, relative: relative}
		profile, record := change{new: a, traffic: o.Traffic}.profile(), normalName(name)
		// Whether others have the name is not asked here, because they may have left since it was read: their endpoints keep the profile.
		all = append(all, Write{Verb: azure.Delete, ID: profile.Child(endpointKind, id), Record: record},
			Write{Verb: azure.Delete, ID: profile, Record: record})
	}
	return all
}

// Routes returns the writes that bring back what a cluster has in Traffic Manager, should it be gone or otherwise.
func (s Snapshot) Routes(o Options) (all []Write, err error) {
	inOrder := func(a, b Key) int { return strings.Compare(a.Zone+a.Name+a.Type, b.Zone+b.Name+b.Type) }
	for _, key := range slices.SortedFunc(maps.Keys(s.Sets), inOrder) {
		set, own := s.Sets[key], Shares{}
		for id, c := range set.Shares {
			if c.Cluster == o.Cluster && c.Routing != nil {
				own[id] = c
			}
		}
		a := &admitted{endpoint: Endpoint{Name: set.FullName(), Type: set.Type}, zone: set.Zone, relative: set.Name}
		writes, _, err := change{new: a, cluster: o.Cluster, traffic: o.Traffic}.trafficWrites(nil, own)
		if err != nil {
			return nil, err
		}
		for _, w := range writes {
			w.Ensure = !w.ID.Is(ProfileType)
			all = append(all, w)
		}
	}
	return all, nil
}
