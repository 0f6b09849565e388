package web

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/core/store"
	"kaz/internal/localazure/core/world"
)

const (
	// glow is how long the map shows that a resource has changed.
	glow = 6 * time.Second
	// mostCards is how many resources the map shows. A filter shows others.
	mostCards = 5000
	// mostNews is how many of the last writes the map lists.
	mostNews = 12
	// mostOpen is how many resources below another one are shown at once.
	mostOpen = 12
)

// filter selects resources.
type filter struct{ Group, Type, Name string }

func readFilter(r *http.Request) filter {
	q := r.URL.Query()
	return filter{q.Get("group"), q.Get("type"), strings.TrimSpace(q.Get("name"))}
}

func (f filter) isEmpty() bool { return f == filter{} }

func (f filter) matches(id azure.ID) bool {
	return (f.Group == "" || strings.EqualFold(f.Group, id.Group())) &&
		(f.Type == "" || strings.EqualFold(f.Type, id.Type())) &&
		(f.Name == "" || strings.Contains(strings.ToLower(id.Name()), strings.ToLower(f.Name)))
}

// mapPage is the map.
type mapPage struct {
	Filter        filter
	Groups        []group
	GroupNames    []string
	Types         []typeName
	Shown, Stored int
	News          []change
	fresh         bool // a resource has changed just now
}

type typeName struct{ Full, Short string }

// group is a resource group, or what is in none.
type group struct {
	ID       azure.ID // "" for none
	Name     string
	Fresh    string
	Count    int
	Sections []section
}

// section is a kind of resources in a group.
type section struct {
	Name  string
	Cards []*card
}

// card is a resource on the map.
type card struct {
	ID      azure.ID
	Label   string // of its type
	Name    string // with those of the resources that it is below
	State   string // provisioningState if it is not Succeeded
	Fresh   string // created or changed, just now
	Anchor  string
	To      string // anchors of the resources that it refers to
	Facts   []string
	Rows    []row
	Subnets []subnetBox
	Below   []*card
	Open    bool // Below is shown at once

	order uint64
	homed bool // it is shown in a subnet
}

// subnetBox is a subnet with the resources that refer to it.
type subnetBox struct {
	ID             azure.ID
	Name, Prefixes string
	Members        []*card
}

// areas are the sections of a group with the beginnings of the types in each, in lower case. The first that fits decides.
var areas = []struct {
	name  string
	types []string
}{
	{"Load balancing", []string{loadBalancers, "microsoft.network/publicip", "microsoft.network/applicationgateway",
		"microsoft.network/trafficmanager", "microsoft.network/natgateway"}},
	{"Names", []string{"microsoft.network/dnszones", "microsoft.network/privatednszones"}},
	{"Networks", []string{virtualNetworks, "microsoft.network/"}},
	{"Disks", []string{"microsoft.compute/disks", "microsoft.compute/snapshots", "microsoft.compute/diskaccesses"}},
	{"Machines", []string{"microsoft.compute/"}},
	{"Storage", []string{"microsoft.storage/", "microsoft.containerregistry/"}},
	{"Identities and rights", []string{"microsoft.managedidentity/", "microsoft.authorization/", "microsoft.keyvault/"}},
}

// order is that of the sections on the map.
var order = []string{"Networks", "Load balancing", "Machines", "Disks", "Storage", "Names", "Identities and rights", "Other"}

func areaOf(fullType string) string {
	key := strings.ToLower(fullType)
	for _, a := range areas {
		if slices.ContainsFunc(a.types, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			return a.name
		}
	}
	return "Other"
}

// longName is the name of a resource with those of the resources that it is below, such as "pool/0".
func longName(id azure.ID) string {
	name := id.Name()
	for top := id.TopLevel(); !id.Equal(top); {
		id = id.Parent()
		name = id.Name() + "/" + name
	}
	return name
}

// Within is the name of the card below its top-level resource.
func (c *card) Within() string {
	_, name, _ := strings.Cut(c.Name, "/")
	return name
}

// resourceLink is the path of the page of a resource.
func resourceLink(id azure.ID) string {
	return Path + "resource?" + url.Values{"id": {string(id)}}.Encode()
}

func (s *Site) showMap(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusOK, frame{View: "map", Title: "Map"}, func() (any, int) {
		page := s.mapOf(readFilter(r), time.Now())
		if page.fresh {
			return page, int(glow / time.Millisecond)
		}
		return page, 0
	})
}

// entries are the stored resources that clients see, oldest first.
func (s *Site) entries() []*store.Entry {
	s.Azure.EndDue()
	var all []*store.Entry
	s.Azure.Read(func(t *world.Transaction) { all = t.All() })
	return slices.DeleteFunc(all, func(e *store.Entry) bool { return e.Hidden })
}

// digestsOf returns the digests of resources. It reads only the documents that have changed since the last call.
func (s *Site) digestsOf(entries []*store.Entry) map[string]*digest {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := make(map[string]*digest, len(entries))
	for _, e := range entries {
		key := e.ID.Key()
		if d := s.digests[key]; d != nil && d.entry == e {
			fresh[key] = d
		} else {
			fresh[key] = digestOf(e)
		}
	}
	s.digests = fresh
	return fresh
}

// drawing is a map that is being made.
type drawing struct {
	site     *Site
	entries  []*store.Entry
	digests  map[string]*digest
	cards    map[string]*card // by the keys of their ids
	fresh    map[string]string
	referrer map[string][]string // keys of resources by the keys of what they refer to
}

// mapOf makes the map of the resources that a filter selects.
func (s *Site) mapOf(f filter, now time.Time) mapPage {
	d := &drawing{site: s, entries: s.entries(), cards: map[string]*card{}, fresh: map[string]string{}, referrer: map[string][]string{}}
	d.digests = s.digestsOf(d.entries)
	for _, c := range s.Recorder.latest(now.Add(-glow), mostCards, s.byline) {
		d.fresh[c.ID.Key()] = c.Verb
	}
	page := mapPage{Filter: f, Stored: len(d.entries), News: s.Recorder.latest(time.Time{}, mostNews, s.byline)}
	page.fresh = len(d.fresh) > 0
	page.GroupNames, page.Types = choices(d.entries)
	selected := d.selected(f)
	if len(selected) > mostCards {
		selected = selected[:mostCards]
	}
	page.Shown = len(selected)
	d.draw(selected)
	page.Groups = d.groups(selected)
	return page
}

// choices are the groups and the types to choose from.
func choices(entries []*store.Entry) (groups []string, types []typeName) {
	seen := map[string]bool{}
	for _, e := range entries {
		if g := e.ID.Group(); g != "" && !seen[strings.ToLower(g)] {
			seen[strings.ToLower(g)] = true
			groups = append(groups, g)
		}
		if !seen[e.Kind.Name] {
			seen[e.Kind.Name] = true
			types = append(types, typeName{e.Kind.Name, strings.TrimPrefix(e.Kind.Name, "Microsoft.")})
		}
	}
	slices.SortFunc(groups, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	slices.SortFunc(types, func(a, b typeName) int { return strings.Compare(a.Full, b.Full) })
	return groups, types
}

// selected are the resources that a filter selects, with the resources that they are below.
func (d *drawing) selected(f filter) []*store.Entry {
	if f.isEmpty() {
		return d.entries
	}
	keep := map[string]bool{}
	for _, e := range d.entries {
		if !f.matches(e.ID) {
			continue
		}
		keep[e.ID.Key()] = true
		if top := e.ID.TopLevel(); top != "" {
			keep[top.Key()] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(d.entries), func(e *store.Entry) bool { return !keep[e.ID.Key()] })
}

// draw makes the cards of resources and connects them.
func (d *drawing) draw(selected []*store.Entry) {
	for _, e := range d.entries { // counts of members are of all resources
		key := e.ID.Key()
		for _, t := range d.digests[key].targets {
			d.referrer[t.key] = append(d.referrer[t.key], key)
		}
	}
	for _, e := range selected {
		key := e.ID.Key()
		digest := d.digests[key]
		c := &card{ID: e.ID, Name: longName(e.ID), Label: labelOf(e.Kind.Name), Fresh: d.fresh[key],
			Anchor: "r" + strconv.FormatUint(e.Seq, 10), Facts: digest.facts, Rows: d.rows(digest.rows), order: e.Seq}
		if digest.state != "Succeeded" {
			c.State = digest.state
		}
		d.cards[key] = c
	}
	for _, e := range selected {
		key := e.ID.Key()
		d.cards[key].To = d.anchors(d.digests[key].targets)
		d.fillSubnets(d.cards[key], d.digests[key])
	}
}

// rows are the rows of a resource with the numbers of members of its pools, and the health of those of its rules.
func (d *drawing) rows(rows []row) []row {
	all := slices.Clone(rows)
	for i, r := range all {
		if r.pool == "" {
			continue
		}
		n := 0
		for _, key := range d.referrer[r.pool] {
			if isMember(d.digests[key].entry) {
				n++
			}
		}
		all[i].Text = memberCount(n)
	}
	d.site.withHealth(all)
	return all
}

// isInstancePart reports whether a resource is a part of an instance of a scale set, such as its network interface.
func isInstancePart(id azure.ID) bool {
	return strings.HasPrefix(strings.ToLower(id.Type()), scaleSets+"/virtualmachines/")
}

// isMember reports whether a resource that refers to a pool is a network interface. Instances of scale sets, and their models, refer to
// the pools of their network interfaces, too.
func isMember(e *store.Entry) bool {
	name := strings.ToLower(e.Kind.Name)
	return name == interfaces || isInstancePart(e.ID)
}

// anchors are those of the resources on the map that references lead to.
func (d *drawing) anchors(targets []target) string {
	var all []string
	for _, t := range targets {
		if c := d.holder(t.key); c != nil && !slices.Contains(all, c.Anchor) {
			all = append(all, c.Anchor)
		}
	}
	return strings.Join(all, " ")
}

// holder is the card of the resource that has a key, or that a part with the key is in.
func (d *drawing) holder(key string) *card {
	for id := azure.ID(key); id != "" && id.Group() != ""; id = id.Parent() {
		if c := d.cards[id.Key()]; c != nil {
			return c
		}
	}
	return nil
}

// fillSubnets puts the resources that refer to the subnets of a network into them.
func (d *drawing) fillSubnets(network *card, digest *digest) {
	for _, s := range digest.inside {
		box := subnetBox{ID: s.id, Name: s.id.Name(), Prefixes: s.prefixes}
		seen := map[*card]bool{}
		for _, key := range d.referrer[s.id.Key()] {
			c := d.cards[key]
			if c == nil || seen[c] || isInstancePart(c.ID) {
				continue
			}
			seen[c] = true
			if c.ID.Is(interfaces) && c.ID.Group() == network.ID.Group() {
				c.homed = true
			}
			box.Members = append(box.Members, c)
		}
		network.Subnets = append(network.Subnets, box)
	}
}

// groups arranges the cards.
func (d *drawing) groups(selected []*store.Entry) []group {
	byName := map[string]*group{}
	sections := map[string]map[string]*section{}
	var names []string
	for _, e := range selected {
		key := strings.ToLower(e.ID.Group())
		g := byName[key]
		if g == nil {
			g = &group{Name: cmp.Or(e.ID.Group(), "No resource group")}
			byName[key], sections[key] = g, map[string]*section{}
			names = append(names, key)
		}
		c := d.cards[e.ID.Key()]
		if e.ID.Is(resourceGroups) {
			g.ID, g.Name, g.Fresh = e.ID, e.ID.Name(), c.Fresh
			continue
		}
		g.Count++
		if above := d.above(e.ID); above != nil {
			above.Below = append(above.Below, c)
			above.Open = len(above.Below) <= mostOpen
			continue
		}
		if c.homed {
			continue
		}
		area := areaOf(e.Kind.Name)
		if sections[key][area] == nil {
			sections[key][area] = &section{Name: area}
		}
		sections[key][area].Cards = append(sections[key][area].Cards, c)
	}
	slices.Sort(names)
	var all []group
	for _, name := range names {
		g := byName[name]
		for _, area := range order {
			if sec := sections[name][area]; sec != nil {
				slices.SortStableFunc(sec.Cards, func(a, b *card) int { // large ones first
					return cmp.Or(cmp.Compare(len(b.Subnets), len(a.Subnets)), cmp.Compare(len(b.Rows), len(a.Rows)))
				})
				g.Sections = append(g.Sections, *sec)
			}
		}
		all = append(all, *g)
	}
	return all
}

// above is the card of the top-level resource that a resource is below, nil for none.
func (d *drawing) above(id azure.ID) *card {
	top := id.TopLevel()
	if top == "" || top.Equal(id) {
		return nil
	}
	return d.cards[top.Key()]
}

// byline says what wrote a version.
func (s *Site) byline(w core.Written) string {
	by := w.By
	name := s.Callers[strings.ToLower(by.Application)]
	if name == "" {
		name = by.Application
	}
	agent, _, _ := strings.Cut(by.Agent, " ")
	parts := slices.DeleteFunc([]string{by.Act, name, agent}, func(text string) bool { return text == "" })
	if len(parts) == 0 {
		return "the local Azure"
	}
	return strings.Join(parts, " · ")
}

// formatFactor is a factor of latencies as --latency has it.
func formatFactor(factor float64) string {
	switch factor {
	case 0:
		return "off"
	case 1:
		return "azure"
	}
	return strconv.FormatFloat(factor, 'g', -1, 64)
}
