// Package names decides what kaz's webhook would write of the records that ExternalDNS keeps in zones of Azure DNS. Layer L3.
package names

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kaz/internal/dns"
	"kaz/internal/plan/records"
	plan "kaz/internal/plan/shadow"
	"kaz/internal/shadow"
)

// Source decides about the records that the TXT records of an owner claim for Services and Ingresses, "" for any owner. ExternalDNS wants
// the addresses in the statuses of these objects. Records of other kinds of objects are left out, because what it wants of them depends on
// its flags.
func Source(client kubernetes.Interface, c dns.Config, owner string) shadow.Source {
	return shadow.Source{Kind: "names", Decide: func(ctx context.Context) ([]plan.Verdict, error) {
		objects, err := targets(ctx, client)
		if err != nil {
			return nil, err
		}
		s, err := dns.Survey(ctx, c)
		if err != nil {
			return nil, err
		}
		return verdicts(s, objects, c.Options, owner), nil
	}}
}

// targetAnnotation has the targets of an object in place of its addresses, separated by commas.
const targetAnnotation = "external-dns.alpha.kubernetes.io/target"

// targets returns the targets of Services of type LoadBalancer and of Ingresses, by KIND/NAMESPACE/NAME as ExternalDNS writes it.
func targets(ctx context.Context, client kubernetes.Interface) (map[string][]string, error) {
	services, err := shadow.List(ctx, "Services", "", func(l *corev1.ServiceList) []corev1.Service { return l.Items },
		client.CoreV1().Services("").List)
	if err != nil {
		return nil, err
	}
	ingresses, err := shadow.List(ctx, "Ingresses", "", func(l *networking.IngressList) []networking.Ingress { return l.Items },
		client.NetworkingV1().Ingresses("").List)
	if err != nil {
		return nil, err
	}
	all := map[string][]string{}
	add := func(kind string, o metav1.ObjectMeta, addresses []string) {
		if given := o.Annotations[targetAnnotation]; given != "" {
			addresses = strings.Split(strings.ReplaceAll(given, " ", ""), ",")
		}
		all[kind+"/"+o.Namespace+"/"+o.Name] = addresses
	}
	for _, s := range services {
		var addresses []string
		for _, i := range s.Status.LoadBalancer.Ingress {
			addresses = append(addresses, cmp.Or(i.Hostname, i.IP))
		}
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			add("service", s.ObjectMeta, addresses)
		}
	}
	for _, one := range ingresses {
		var addresses []string
		for _, i := range one.Status.LoadBalancer.Ingress {
			addresses = append(addresses, cmp.Or(i.Hostname, i.IP))
		}
		add("ingress", one.ObjectMeta, addresses)
	}
	return all, nil
}

// verdicts compares each claimed record with what its object has.
func verdicts(s records.Snapshot, objects map[string][]string, o records.Options, owner string) (all []plan.Verdict) {
	shown := map[string]records.Endpoint{}
	for _, e := range s.Endpoints(o.Cluster) {
		shown[e.Name+" "+e.Type] = e
	}
	for _, set := range s.Sets {
		c, ok := claimOf(set)
		wanted, known := objects[c.resource]
		if !ok || !known || owner != "" && c.owner != owner {
			continue
		}
		have, exists := shown[c.name+" "+c.recordType]
		v := plan.Verdict{Object: c.name + " " + c.recordType + " of " + c.resource}
		decided := records.Decide(s, c.changes(have, exists, wanted), o)
		for _, p := range decided.Problems {
			v.Refused = p.Message
		}
		for _, h := range decided.Hosts {
			for _, step := range h.Steps {
				v.Writes = append(v.Writes, step.String())
			}
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b plan.Verdict) int { return strings.Compare(a.Object, b.Object) })
	return all
}

// claim is what a TXT record of ExternalDNS's registry says.
type claim struct{ name, recordType, owner, resource string }

// claimOf reads a claim with the usual name, TYPE-NAME.
func claimOf(set records.Set) (c claim, ok bool) {
	if set.Type != "TXT" || len(set.Targets) == 0 {
		return c, false
	}
	for label := range strings.SplitSeq(strings.Trim(set.Targets[0], `"`), ",") {
		switch key, value, _ := strings.Cut(label, "="); key {
		case "external-dns/owner":
			c.owner = value
		case "external-dns/resource":
			c.resource = value
		}
	}
	kind, name, found := strings.Cut(set.FullName(), "-")
	c.name, c.recordType = name, strings.ToUpper(kind)
	return c, found && slices.Contains([]string{"A", "AAAA", "CNAME"}, c.recordType) && c.resource != ""
}

// changes are what ExternalDNS asks for when the record of a claim is to have the targets of its object.
func (c claim) changes(have records.Endpoint, exists bool, targets []string) (all records.Changes) {
	want := records.Endpoint{Name: c.name, Type: c.recordType, TTL: have.TTL, ProviderSpecific: have.ProviderSpecific}
	for _, t := range targets {
		if typeOf(t) == c.recordType {
			want.Targets = append(want.Targets, t)
		}
	}
	switch {
	case len(want.Targets) == 0 && exists:
		all.Delete = []records.Endpoint{have}
	case len(want.Targets) == 0:
	case exists:
		all.UpdateOld, all.UpdateNew = []records.Endpoint{have}, []records.Endpoint{want}
	default:
		all.Create = []records.Endpoint{want}
	}
	return all
}

// typeOf is the type of the records with a target.
func typeOf(target string) string {
	ip, err := netip.ParseAddr(target)
	switch {
	case err != nil:
		return "CNAME"
	case ip.Is4():
		return "A"
	}
	return "AAAA"
}
