package web

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/picture"
)

// Explainer explains objects of the cluster that runs on the local Azure.
type Explainer interface {
	// Objects returns objects that can be explained.
	Objects(ctx context.Context) ([]Subject, error)
	// Explain returns the decision about an object.
	Explain(ctx context.Context, of Subject) (picture.Picture, error)
}

// Subject is what is explained.
type Subject struct {
	Kind string // of [subjectKinds]
	Name string // NAMESPACE/NAME of an object, the name of a scale set, or a DNS name
	// Limits are the limits MIN:MAX of a node group, if Azure is to be read without a provider that knows them.
	Limits string
	// Groups are the ids of the resource groups with zones, for a DNS name.
	Groups []string
}

const (
	// whyTimeout is the time for an explanation, with the time that it waits for others: one at a time is made.
	whyTimeout = 30 * time.Second
	// mostSubjects is how many objects the view lists.
	mostSubjects = 500
	nodeGroup    = "nodegroup"
	dnsName      = "name"
)

// subjectKind is a kind of subjects.
type subjectKind struct{ Name, Label, Want string }

var subjectKinds = []subjectKind{
	{"service", "Service", "NAMESPACE/NAME"}, {"volume", "PersistentVolumeClaim", "NAMESPACE/NAME"},
	{"ingress", "Ingress", "NAMESPACE/NAME"}, {"gateway", "Gateway", "NAMESPACE/NAME"}, {"httproute", "HTTPRoute", "NAMESPACE/NAME"},
	{nodeGroup, "Node group", "the name of a scale set"}, {dnsName, "DNS name", "such as app.example.com"},
}

// The forms of names and limits. A name is an argument of a program, so it cannot look like a flag.
var (
	subjectName   = regexp.MustCompile(`^[A-Za-z0-9_*][A-Za-z0-9_.*/-]{0,511}$`)
	subjectLimits = regexp.MustCompile(`^(\d{1,4}:\d{1,4})?$`)
)

// whyPage is an explanation, or the objects to choose from.
type whyPage struct {
	Kinds   []subjectKind
	Subject Subject
	Absent  bool // there is no cluster to ask
	Problem string
	Lists   []subjectList
	Picture template.HTML
	Text    string
	Made    time.Time
}

// subjectList are the objects of a kind.
type subjectList struct {
	Label string
	All   []Subject
	More  int
}

// Link is the path of the page that explains a subject.
func (s Subject) Link() string {
	return Path + "why?" + url.Values{"kind": {s.Kind}, "name": {s.Name}}.Encode()
}

func (s *Site) showWhy(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	of := Subject{Kind: q.Get("kind"), Name: strings.TrimSpace(q.Get("name")), Limits: strings.TrimSpace(q.Get("limits"))}
	page := whyPage{Kinds: subjectKinds, Subject: of, Absent: s.Why == nil, Made: time.Now()}
	problem := of.check()
	status := http.StatusOK
	if of.Name != "" && problem != "" {
		status = http.StatusBadRequest
	}
	s.show(w, r, status, frame{View: "why", Title: "Why"}, func() (any, int) {
		ctx, cancel := context.WithTimeout(r.Context(), whyTimeout)
		defer cancel()
		switch {
		case page.Absent:
		case of.Name == "":
			s.list(ctx, &page)
		case problem != "":
			page.Problem = problem
		default:
			s.explain(ctx, &page)
		}
		return page, 0
	})
}

// check returns what is wrong with a subject, "" for nothing.
func (s Subject) check() string {
	switch {
	case !slices.ContainsFunc(subjectKinds, func(k subjectKind) bool { return k.Name == s.Kind }):
		return "There is no kind " + s.Kind + " to explain."
	case !subjectName.MatchString(s.Name):
		return s.Name + " is not a name: want letters, digits and . / - _ *, at most 512 of them."
	case !subjectLimits.MatchString(s.Limits):
		return "The limits " + s.Limits + " are not MIN:MAX, such as 0:10."
	}
	return ""
}

// explain fills a page with the explanation of its subject.
func (s *Site) explain(ctx context.Context, page *whyPage) {
	of := page.Subject
	if of.Kind == dnsName {
		of.Groups = s.zoneGroups()
	}
	var p picture.Picture
	err := s.one(ctx, func() (err error) {
		p, err = s.Why.Explain(ctx, of)
		return err
	})
	if err != nil {
		page.Problem = problemOf(ctx, err)
		return
	}
	page.Text, p.Text = p.Text, ""
	// The picture escapes all of its texts.
	page.Picture = template.HTML(p.Inline(func(id string) string { return resourceLink(azure.ID(id)) }))
}

// list fills a page with what can be explained.
func (s *Site) list(ctx context.Context, page *whyPage) {
	var all []Subject
	err := s.one(ctx, func() (err error) {
		all, err = s.Why.Objects(ctx)
		return err
	})
	if err != nil {
		page.Problem = problemOf(ctx, err)
	}
	for _, e := range s.entries() {
		switch {
		case e.ID.Is(scaleSetType):
			all = append(all, Subject{Kind: nodeGroup, Name: e.ID.Name()})
		case isRecordSet(e.ID):
			all = append(all, Subject{Kind: dnsName, Name: e.ID.Name() + "." + e.ID.Parent().Name()})
		}
	}
	for _, k := range page.Kinds {
		l := subjectList{Label: k.Label}
		for _, o := range all {
			if o.Kind == k.Name && !slices.ContainsFunc(l.All, func(x Subject) bool { return x.Name == o.Name }) {
				l.All = append(l.All, o)
			}
		}
		if l.More = len(l.All) - mostSubjects; l.More > 0 {
			l.All = l.All[:mostSubjects]
		}
		if len(l.All) > 0 {
			page.Lists = append(page.Lists, l)
		}
	}
}

// one runs f when no other viewer waits for an explanation.
func (s *Site) one(ctx context.Context, f func() error) error {
	select {
	case s.explains <- struct{}{}:
		defer func() { <-s.explains }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func problemOf(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "It took longer than " + whyTimeout.String() + "."
	}
	return err.Error()
}

// zoneGroups are the ids of the resource groups with DNS zones.
func (s *Site) zoneGroups() (all []string) {
	for _, e := range s.entries() {
		if !e.ID.Is(publicZones) && !e.ID.Is(privateZones) {
			continue
		}
		if group := string(azure.GroupID(e.ID.Subscription(), e.ID.Group())); !slices.Contains(all, group) {
			all = append(all, group)
		}
	}
	return all
}

const (
	scaleSetType = "Microsoft.Compute/virtualMachineScaleSets"
	publicZones  = "Microsoft.Network/dnszones"
	privateZones = "Microsoft.Network/privateDnsZones"
)

// isRecordSet reports whether a resource is a record set that clients look names up for.
func isRecordSet(id azure.ID) bool {
	zone, kind, _ := cutLast(id.Type())
	return (strings.EqualFold(zone, publicZones) || strings.EqualFold(zone, privateZones)) && id.Name() != "@" &&
		slices.Contains([]string{"A", "AAAA", "CNAME"}, strings.ToUpper(kind))
}

func cutLast(text string) (before, after string, found bool) {
	if i := strings.LastIndexByte(text, '/'); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}
