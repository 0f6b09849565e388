package testkit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
)

// Example is a manifest of docs/example-manifests/service. The comment at its top has a
// title, a text, and lines that tests read: "Given:" names what must be in Azure before,
// "Then:" what must be there when the Services are served.
type Example struct {
	Name        string // of the file, without .yaml
	Title, Text string
	Given, Then []string
	Manifest    string // without the comment
	Services    []*corev1.Service
}

// Examples are the manifests in a folder.
func Examples(t testing.TB, dir string) []Example {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples in %s: %v", dir, err)
	}
	var all []Example
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		e := readExample(strings.TrimSuffix(filepath.Base(file), ".yaml"), string(text))
		for one := range strings.SplitSeq(e.Manifest, "---\n") {
			s := &corev1.Service{}
			if err := yaml.UnmarshalStrict([]byte(one), s); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if s.Namespace == "" {
				s.Namespace = corev1.NamespaceDefault
			}
			e.Services = append(e.Services, s)
		}
		all = append(all, e)
	}
	return all
}

func readExample(name, text string) Example {
	e := Example{Name: name}
	for line := range strings.Lines(text) {
		comment, ok := strings.CutPrefix(line, "#")
		if !ok {
			e.Manifest += line
			continue
		}
		comment = strings.TrimSpace(comment)
		given, isGiven := strings.CutPrefix(comment, "Given: ")
		then, isThen := strings.CutPrefix(comment, "Then: ")
		switch {
		case isGiven:
			e.Given = append(e.Given, given)
		case isThen:
			e.Then = append(e.Then, then)
		case e.Title == "":
			e.Title = comment
		default:
			e.Text = strings.TrimSpace(e.Text + " " + comment)
		}
	}
	return e
}

// String is the example's file.
func (e Example) String() string {
	var b strings.Builder
	b.WriteString("# " + e.Title + "\n#\n")
	const width = 100
	line := "#"
	for word := range strings.FieldsSeq(e.Text) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
	for _, g := range e.Given {
		b.WriteString("# Given: " + g + "\n")
	}
	for _, then := range e.Then {
		b.WriteString("# Then: " + then + "\n")
	}
	return b.String() + e.Manifest
}

// DualStack reports whether an example needs a cluster with both IP families.
func (e Example) DualStack() bool { return slices.Contains(e.Given, "dual stack") }

// Door is what preparing Azure for examples takes.
type Door interface {
	azure.Reader
	azure.Writer
}

// Prepare puts into Azure what examples need.
func Prepare(ctx context.Context, d Door, group azure.ID, vnet azure.ID, given []string) error {
	for _, g := range given {
		what, name, elsewhere := parseGiven(g)
		in := group
		if elsewhere != "" {
			in = azure.GroupID(group.Subscription(), elsewhere)
			if err := put(ctx, d, in, object{"location": Location}); err != nil {
				return err
			}
		}
		var err error
		switch what {
		case "public IP":
			err = put(ctx, d, in.Resource(network.PublicIPAddresses, name), object{
				"location": Location, "sku": object{"name": "Standard"}, "properties": object{"publicIPAllocationMethod": "Static"},
			})
		case "public IP prefix":
			err = put(ctx, d, in.Resource("Microsoft.Network/publicIPPrefixes", name), object{
				"location": Location, "sku": object{"name": "Standard"}, "properties": object{"prefixLength": 28},
			})
		case "subnet":
			err = addSubnet(ctx, d, vnet, name)
		case "dual stack":
		default:
			err = fmt.Errorf("%q: want public IP, public IP prefix or subnet with a name", g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// parseGiven takes "public IP web-ip in the resource group addresses" apart.
func parseGiven(text string) (what, name, group string) {
	text, group, _ = strings.Cut(text, " in the resource group ")
	if text == "dual stack" {
		return text, "", group
	}
	i := max(strings.LastIndexByte(text, ' '), 0)
	return text[:i], strings.TrimSpace(text[i:]), group
}

func put(ctx context.Context, d azure.Writer, id azure.ID, body any) error {
	doc, err := json.Marshal(body)
	if err != nil {
		return err
	}
	_, err = d.Put(ctx, azure.Write{ID: id, Body: doc})
	return err
}

// addSubnet gives a virtual network another subnet, in a range of its own.
func addSubnet(ctx context.Context, d Door, vnet azure.ID, name string) error {
	doc, err := d.Get(ctx, vnet)
	if err != nil {
		return err
	}
	var v struct {
		Location   string `json:"location"`
		Properties object `json:"properties"`
	}
	if err := json.Unmarshal(doc, &v); err != nil {
		return err
	}
	const space = "10.241.0.0/16"
	prefixes, _ := v.Properties["addressSpace"].(object)["addressPrefixes"].([]any)
	v.Properties["addressSpace"] = object{"addressPrefixes": append(prefixes, space)}
	subnets, _ := v.Properties["subnets"].([]any)
	v.Properties["subnets"] = append(subnets, object{"name": name, "properties": object{"addressPrefix": space}})
	return put(ctx, d, vnet, v)
}

// Facts is what Azure has for a Service as it is served, in words that are the same
// wherever it runs: addresses and node ports by what they are.
func (e Env) Facts(t *testing.T, s *corev1.Service) []string {
	t.Helper()
	f := facts{service: s, base: "a" + strings.ReplaceAll(string(s.UID), "-", "")[:31], addresses: map[string]bool{}}
	for _, in := range s.Status.LoadBalancer.Ingress {
		f.addresses[in.IP] = true
	}
	for _, doc := range e.list(t, azure.Query{Scope: e.Group, Type: network.LoadBalancers}) {
		lb, err := azure.Decode[network.LoadBalancer](doc)
		if err != nil {
			t.Fatal(err)
		}
		f.balancer(t, e, lb)
	}
	rest := len(f.lines)
	for _, r := range view[network.SecurityGroup](t, e, e.SecurityGroup).Properties.SecurityRules {
		f.securityRule(r.Properties)
	}
	slices.Sort(f.lines[rest:]) // their order says nothing
	for _, doc := range e.list(t, azure.Query{Scope: e.Group, Type: network.PrivateLinkServices}) {
		link, err := azure.Decode[network.PrivateLinkService](doc)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(doc), f.base) {
			f.add("private link service %s with %d addresses", link.Name, len(link.Properties.IPConfigurations))
		}
	}
	return f.lines
}

type facts struct {
	service   *corev1.Service
	base      string
	addresses map[string]bool
	lines     []string
}

func (f *facts) add(format string, args ...any) {
	if line := fmt.Sprintf(format, args...); !slices.Contains(f.lines, line) {
		f.lines = append(f.lines, line)
	}
}

func (f *facts) balancer(t *testing.T, e Env, lb azure.Resource[network.LoadBalancer]) {
	t.Helper()
	frontends := map[string]bool{}
	for _, r := range lb.Properties.LoadBalancingRules {
		if strings.HasPrefix(r.Name, f.base) {
			frontends[r.Properties.FrontendIPConfiguration.ID.Name()] = true
		}
	}
	for _, fe := range lb.Properties.FrontendIPConfigurations {
		if frontends[fe.Name] {
			f.frontend(t, e, fe.Properties)
		}
	}
	for _, r := range lb.Properties.LoadBalancingRules {
		if strings.HasPrefix(r.Name, f.base) {
			f.rule(lb, r.Properties)
		}
	}
}

func (f *facts) frontend(t *testing.T, e Env, fe network.FrontendIPConfiguration) {
	t.Helper()
	if fe.PublicIPAddress == nil {
		how := "an address"
		if strings.EqualFold(fe.PrivateIPAllocationMethod, "Static") {
			how = fe.PrivateIPAddress
		}
		f.add("internal load balancer: %s in the subnet %s", how, fe.Subnet.ID.Name())
		return
	}
	ip := view[network.PublicIPAddress](t, e, fe.PublicIPAddress.ID)
	family := strings.ToLower(ip.Properties.PublicIPAddressVersion)
	text := "public IP of its own (" + strings.Replace(family, "ip", "IP", 1) + ")"
	if !strings.Contains(ip.Name, f.base) {
		text = "public IP " + ip.Name
		if group := ip.ID.Group(); !strings.EqualFold(group, e.Group.Group()) {
			text += " of the resource group " + group
		}
	}
	if p := ip.Properties.PublicIPPrefix; p != nil {
		text += " out of " + p.ID.Name()
	}
	if d := ip.Properties.DNSSettings; d != nil && d.DomainNameLabel != "" {
		text += " with the DNS label " + d.DomainNameLabel
	}
	var tags []string
	for name, value := range ip.Tags {
		if !strings.HasPrefix(name, "k8s-azure-") {
			tags = append(tags, name+"="+value)
		}
	}
	if slices.Sort(tags); len(tags) > 0 {
		text += " with the tags " + strings.Join(tags, " ")
	}
	f.add("%s", text)
}

func (f *facts) rule(lb azure.Resource[network.LoadBalancer], r network.LoadBalancingRule) {
	text := fmt.Sprintf("rule %s %d to %s", r.Protocol, r.FrontendPort, f.port(r.BackendPort))
	if strings.EqualFold(r.Protocol, "All") {
		text = "rule for all ports"
	}
	if r.EnableFloatingIP != nil && *r.EnableFloatingIP {
		text += ", floating IP"
	}
	if *r.IdleTimeoutInMinutes != 4 {
		text += fmt.Sprintf(", idle timeout %d min", *r.IdleTimeoutInMinutes)
	}
	if r.EnableTCPReset != nil && !*r.EnableTCPReset && strings.EqualFold(r.Protocol, "Tcp") {
		text += ", no TCP reset"
	}
	if strings.EqualFold(r.LoadDistribution, "SourceIP") {
		text += ", by client"
	}
	if r.Probe == nil {
		f.add("%s, no probe", text)
		return
	}
	probe, _ := named(lb.Properties.Probes, r.Probe.ID.Name())
	p := probe.Properties
	f.add("%s, probe %s %s%s every %d s", text, p.Protocol, f.port(p.Port), p.RequestPath, p.IntervalInSeconds)
}

// port is a port by what it is.
func (f *facts) port(n int32) string {
	if n == f.service.Spec.HealthCheckNodePort && n > 0 {
		return "health check node port"
	}
	for _, p := range f.service.Spec.Ports {
		if p.NodePort == n && n > 0 {
			return "node port of " + strconv.Itoa(int(p.Port))
		}
	}
	return strconv.Itoa(int(n))
}

func (f *facts) securityRule(r network.SecurityRule) {
	to, ports := r.DestinationAddressPrefixes, slices.SortedFunc(slices.Values(r.DestinationPortRanges), func(a, b string) int {
		return cmp.Or(len(a)-len(b), strings.Compare(a, b))
	})
	if r.DestinationAddressPrefix != nil {
		to = append(to, *r.DestinationAddressPrefix)
	}
	if r.DestinationPortRange != nil {
		ports = append(ports, *r.DestinationPortRange)
	}
	mine := slices.ContainsFunc(to, func(a string) bool { return f.addresses[a] })
	for i, p := range ports {
		if n, err := strconv.ParseInt(p, 10, 32); err == nil && f.port(int32(n)) != p {
			ports[i], mine = f.port(int32(n)), true
		}
	}
	if !mine {
		return
	}
	sources := slices.Sorted(slices.Values(r.SourceAddressPrefixes))
	if r.SourceAddressPrefix != nil && *r.SourceAddressPrefix != "" {
		sources = append(sources, *r.SourceAddressPrefix)
	}
	f.add("security rule: %s %s %s from %s", strings.ToLower(r.Access), r.Protocol, strings.Join(ports, " "), strings.Join(sources, " "))
}
