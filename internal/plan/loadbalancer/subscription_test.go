package loadbalancer_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// subscription is as much of Azure as these tests need: it applies plans, fills in what
// Azure fills in, and refuses what Azure refuses.
type subscription struct {
	docs  map[string]object // by id key
	etags int
	next  int               // last bytes of the next public IP
	stale bool              // the back references are to be written anew
	seen  map[string]string // text of a document by its id and etag
	// trusting takes it as given that what a decision asks for is enough.
	trusting bool
}

type object = map[string]any

const (
	network = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/"
	compute = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/"
	vmss    = compute + "virtualMachineScaleSets/np"
	lbID    = network + "loadBalancers/kubernetes"
	innerID = lbID + "-internal"
	nsgID   = network + "networkSecurityGroups/nsg"
	vnetID  = network + "virtualNetworks/v"
)

func config() loadbalancer.Config {
	return loadbalancer.Config{
		ClusterName: "kubernetes", Location: "westeurope", Subscription: "s", ResourceGroup: "rg",
		NetworkSubscription: "s", LoadBalancerName: "kubernetes", LoadBalancerResourceGroup: "rg",
		SecurityGroupName: "nsg", SecurityGroupResourceGroup: "rg",
		VirtualNetwork: "v", VirtualNetworkResourceGroup: "rg", Subnet: "n", PrivateLinkResourceGroup: "rg",
		Zones: []string{"1", "2", "3"}, ExcludeControlPlane: true,
	}
}

// newSubscription has a security group with a user's rule, and a scale set with instances.
func newSubscription(instances int) *subscription {
	w := &subscription{docs: map[string]object{}}
	w.put(nsgID, parse(`{"location":"westeurope","properties":{"securityRules":[
		{"name":"ssh","properties":{"priority":501,"direction":"Inbound","access":"Allow","protocol":"Tcp","sourceAddressPrefix":"10.0.0.0/8","sourcePortRange":"*","destinationAddressPrefix":"*","destinationPortRange":"22"}}]}}`))
	for name, ranges := range map[string]string{"n": `"10.0.0.0/16","fd00::/64"`, "apps": `"10.1.0.0/16","fd01::/64"`} {
		w.put(azure.ID(vnetID).Child("subnets", name),
			parse(`{"properties":{"addressPrefixes":[`+ranges+`],"privateLinkServiceNetworkPolicies":"Enabled"}}`))
	}
	w.put(vmss, parse(`{"location":"westeurope","sku":{"name":"Standard_D2s_v3","tier":"Standard","capacity":2},"properties":{"provisioningState":"Succeeded","orchestrationMode":"Uniform",
		"virtualMachineProfile":{"osProfile":{"computerNamePrefix":"np"},"storageProfile":{"osDisk":{"osType":"Linux"}},"networkProfile":`+profile+`}}}`))
	for i := range instances {
		w.put(azure.ID(fmt.Sprintf("%s/virtualMachines/%d", vmss, i)),
			parse(`{"location":"westeurope","sku":{"name":"Standard_D2s_v3"},"properties":{"provisioningState":"Succeeded","latestModelApplied":true,
			"hardwareProfile":{},"networkProfileConfiguration":`+profile+
				`,"instanceView":{"statuses":[{"code":"ProvisioningState/succeeded"},{"code":"PowerState/running"}]}}}`))
	}
	return w
}

const profile = `{"networkInterfaceConfigurations":[{"name":"nic","properties":{"primary":true,"enableAcceleratedNetworking":false,
	"ipConfigurations":[{"name":"ipconfig","properties":{"primary":true,"privateIPAddressVersion":"IPv4","subnet":{"id":"/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v/subnets/n"}}}]}}]}`

func machines(n int) []*v1.Node {
	var out []*v1.Node
	for i := range n {
		out = append(out, &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("np%06d", i)},
			Spec:       v1.NodeSpec{ProviderID: fmt.Sprintf("azure://%s/virtualMachines/%d", vmss, i)},
		})
	}
	return out
}

func service(name string, ports ...v1.ServicePort) *v1.Service {
	uid := fmt.Sprintf("%08x-1111-2222-3333-444455556666", fold(name))
	return &v1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(uid)},
		Spec:       v1.ServiceSpec{Type: v1.ServiceTypeLoadBalancer, Ports: ports},
	}
}

func fold(s string) (h uint32) {
	for _, c := range []byte(s) {
		h = h*16777619 ^ uint32(c)
	}
	return h
}

func tcp(port, node int32) v1.ServicePort {
	return v1.ServicePort{Protocol: v1.ProtocolTCP, Port: port, NodePort: node}
}

func udp(port, node int32) v1.ServicePort {
	return v1.ServicePort{Protocol: v1.ProtocolUDP, Port: port, NodePort: node}
}

func parse(text string) object {
	var o object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(fmt.Sprintf("%v in %s", err, text))
	}
	return o
}

func (w *subscription) snapshot() plan.Snapshot {
	w.settle()
	var docs []azure.Document
	for _, o := range w.docs {
		docs = append(docs, text(o))
	}
	return plan.NewSnapshot(docs...)
}

func text(o any) azure.Document {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

func (w *subscription) clone() *subscription {
	w.settle()
	c := &subscription{docs: map[string]object{}, etags: w.etags, next: w.next}
	for k, o := range w.docs {
		c.docs[k] = parse(string(text(o)))
	}
	return c
}

// apply does the plan's steps in their order.
func (w *subscription) apply(p plan.Plan) error {
	for _, s := range p.Steps {
		if err := w.step(p, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}

// step does a step of a plan. The earlier steps that make its outputs have been done.
func (w *subscription) step(p plan.Plan, s plan.Step) error {
	s, err := s.Bind(func(i int) azure.Document { return text(w.docs[p.Steps[i].ID.Key()]) })
	if err != nil {
		return err
	}
	key := s.ID.Key()
	have, exists := w.docs[key]
	switch s.Op {
	case plan.Delete:
		if by := w.referrer(s.ID); by != "" {
			return fmt.Errorf("%s refers to it", by)
		}
		delete(w.docs, key)
		w.touchLinked(s.ID, have)
		w.stale = true
		return nil
	case plan.Create:
		if exists {
			return fmt.Errorf("it exists")
		}
	case plan.Update:
		if !exists || have["etag"] != s.IfMatch {
			return fmt.Errorf("etag %s is not %v", s.IfMatch, have["etag"])
		}
	}
	body := parse(string(s.Body))
	if strings.Contains(key, "/virtualmachinescalesets/") {
		body = merged(have, body)
	}
	tags, _ := body["tags"].(object)
	for name, value := range tags {
		if n := len(value.(string)); n > 256 {
			return fmt.Errorf("tag %s has %d characters", name, n)
		}
	}
	if by := w.dangling(s.ID, body); by != "" {
		return fmt.Errorf("%s does not exist", by)
	}
	if by := w.addressElsewhere(s.ID, body); by != "" {
		return fmt.Errorf("%s has an address that it asks for", by)
	}
	if by := w.linkAtLost(s.ID, body); by != "" {
		return fmt.Errorf("%s stands at a frontend that goes", by)
	}
	if by := w.linkAtAddresses(s.ID, body); by != "" {
		return fmt.Errorf("private link service and pools of addresses at %s", by)
	}
	w.put(s.ID, body)
	if !exists {
		w.touchLinked(s.ID, body)
	}
	return nil
}

// touchLinked gives the load balancers of a private link service that comes or goes another
// etag.
func (w *subscription) touchLinked(id azure.ID, body object) {
	if !id.Is("Microsoft.Network/privateLinkServices") {
		return
	}
	for _, ref := range children(sub(body, "properties"), "loadBalancerFrontendIpConfigurations") {
		if lb, ok := w.docs[azure.ID(ref["id"].(string)).Parent().Key()]; ok {
			w.etags++
			lb["etag"] = fmt.Sprintf(`W/"%d"`, w.etags)
		}
	}
}

// addressElsewhere is a load balancer that has an address of another one.
func (w *subscription) addressElsewhere(id azure.ID, body object) string {
	addresses := func(lb object) (all []string) {
		for _, fe := range children(sub(lb, "properties"), "frontendIPConfigurations") {
			p := sub(fe, "properties")
			if ip, ok := p["publicIPAddress"].(object); ok {
				all = append(all, strings.ToLower(ip["id"].(string)))
			}
			if ip, ok := p["privateIPAddress"].(string); ok {
				all = append(all, ip)
			}
		}
		return all
	}
	if !id.Is("Microsoft.Network/loadBalancers") {
		return ""
	}
	asked := addresses(body)
	for key, lb := range w.docs {
		has := func(ip string) bool { return slices.Contains(asked, ip) }
		if azure.ID(key).Is("Microsoft.Network/loadBalancers") && !id.Equal(azure.ID(key)) && slices.ContainsFunc(addresses(lb), has) {
			return key
		}
	}
	return ""
}

// linkAtLost is a private link service at a frontend that a load balancer would not have
// any more.
func (w *subscription) linkAtLost(id azure.ID, body object) string {
	if !id.Is("Microsoft.Network/loadBalancers") {
		return ""
	}
	for _, fe := range children(sub(w.docs[id.Key()], "properties"), "frontendIPConfigurations") {
		stays := slices.ContainsFunc(children(sub(body, "properties"), "frontendIPConfigurations"),
			func(c object) bool { return c["name"] == fe["name"] })
		if stays {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(w.docs)) {
			if azure.ID(key).Is("Microsoft.Network/privateLinkServices") &&
				strings.Contains(w.lower(key), `"`+strings.ToLower(fe["id"].(string))+`"`) {
				return key
			}
		}
	}
	return ""
}

// linkAtAddresses is a load balancer that would have a private link service and pools of
// addresses, which Azure has not.
func (w *subscription) linkAtAddresses(id azure.ID, body object) string {
	balancers, linked := map[string]object{}, map[string]bool{}
	look := func(id azure.ID, o object) {
		switch {
		case id.Is("Microsoft.Network/loadBalancers"):
			balancers[id.Key()] = o
		case id.Is(privateLinks):
			for _, ref := range children(sub(o, "properties"), "loadBalancerFrontendIpConfigurations") {
				linked[azure.ID(ref["id"].(string)).Parent().Key()] = true
			}
		}
	}
	for key, o := range w.docs {
		if key != id.Key() {
			look(azure.ID(key), o)
		}
	}
	look(id, body)
	for key, lb := range balancers {
		for _, pool := range children(sub(lb, "properties"), "backendAddressPools") {
			if linked[key] && len(children(sub(pool, "properties"), "loadBalancerBackendAddresses")) > 0 {
				return key
			}
		}
	}
	return ""
}

// merged is what a compute PUT does with sections that are not sent.
func merged(have, body object) object {
	out := maps.Clone(have)
	for k, v := range body {
		if deeper, ok := v.(object); ok {
			if old, ok := have[k].(object); ok {
				v = merged(old, deeper)
			}
		}
		out[k] = v
	}
	return out
}

func (w *subscription) put(id azure.ID, body object) {
	w.etags++
	body["id"], body["name"], body["type"], body["etag"] = string(id), id.Name(), id.Type(), fmt.Sprintf(`W/"%d"`, w.etags)
	p := sub(body, "properties")
	p["provisioningState"] = "Succeeded"
	switch {
	case id.Is("Microsoft.Network/publicIPAddresses"):
		if p["ipAddress"] == nil {
			w.next++
			p["ipAddress"] = fmt.Sprintf("20.1.%d.%d", w.next/250, w.next%250+1)
			if p["publicIPAddressVersion"] == "IPv6" {
				p["ipAddress"] = fmt.Sprintf("2603:1::%x", w.next)
			}
		}
		fill(p, object{"idleTimeoutInMinutes": 4.0, "ipTags": []any{}, "resourceGuid": "g"})
		fill(sub(body, "sku"), object{"tier": "Regional"})
	case id.Is("Microsoft.Network/networkSecurityGroups"):
		fill(p, object{"securityRules": []any{}, "defaultSecurityRules": []any{object{"name": "DenyAllInBound"}}})
		for _, r := range children(p, "securityRules") {
			w.child(id, "securityRules", r)
			rp := sub(r, "properties")
			for _, pair := range [][2]string{{"sourceAddressPrefix", "sourceAddressPrefixes"},
				{"destinationAddressPrefix", "destinationAddressPrefixes"}, {"sourcePortRange", "sourcePortRanges"},
				{"destinationPortRange", "destinationPortRanges"}} {
				fill(rp, object{pair[1]: []any{}})
			}
		}
	case id.Is("Microsoft.Network/loadBalancers"):
		w.putBalancer(id, body, p)
	}
	w.docs[id.Key()] = body
	w.stale = true
}

func (w *subscription) putBalancer(id azure.ID, body, p object) {
	fill(sub(body, "sku"), object{"tier": "Regional"})
	for _, kind := range []string{"frontendIPConfigurations", "backendAddressPools", "loadBalancingRules", "probes", "inboundNatRules",
		"outboundRules", "inboundNatPools"} {
		fill(p, object{kind: []any{}})
		for _, c := range children(p, kind) {
			w.child(id, kind, c)
		}
	}
	for _, c := range children(p, "frontendIPConfigurations") {
		fp := sub(c, "properties")
		fill(fp, object{"privateIPAllocationMethod": "Dynamic"})
		if subnet, ok := fp["subnet"].(object); ok && fp["privateIPAddress"] == nil {
			fp["privateIPAddress"] = w.private(azure.ID(subnet["id"].(string)), fp["privateIPAddressVersion"] == "IPv6")
		}
	}
	for _, c := range children(p, "loadBalancingRules") {
		r := sub(c, "properties")
		fill(r, object{"enableTcpReset": false, "enableDestinationServiceEndpoint": false, "allowBackendPortConflict": false,
			"backendAddressPools": []any{r["backendAddressPool"]}})
	}
	for _, c := range children(p, "probes") {
		fill(sub(c, "properties"), object{"numberOfProbes": 1.0})
	}
}

// private is the next free address of a subnet, as none of the nodes has.
func (w *subscription) private(subnet azure.ID, six bool) string {
	w.next++
	p := sub(w.docs[subnet.Key()], "properties")
	ranges, _ := p["addressPrefixes"].([]any)
	for _, text := range append([]any{p["addressPrefix"]}, ranges...) {
		s, _ := text.(string)
		switch r, err := netip.ParsePrefix(s); {
		case err != nil || r.Addr().Is6() != six:
		case six:
			return fmt.Sprintf("%s9:%x", strings.TrimSuffix(r.Addr().String(), ":")+":", w.next)
		default:
			b := r.Addr().As4()
			return fmt.Sprintf("%d.%d.9.%d", b[0], b[1], w.next)
		}
	}
	panic(fmt.Sprintf("%s has no range for IPv6 %v", subnet, six))
}

func (w *subscription) child(parent azure.ID, kind string, c object) {
	c["id"] = string(parent.Child(kind, c["name"].(string)))
	c["type"] = parent.Type() + "/" + kind
	sub(c, "properties")["provisioningState"] = "Succeeded"
}

// settle writes the back references.
func (w *subscription) settle() {
	if !w.stale {
		return
	}
	w.stale = false
	attached := map[string]string{}
	for key, o := range w.docs {
		if !azure.ID(key).Is("Microsoft.Network/loadBalancers") {
			continue
		}
		for _, fe := range children(sub(o, "properties"), "frontendIPConfigurations") {
			if ref, ok := sub(fe, "properties")["publicIPAddress"].(object); ok {
				attached[azure.ID(ref["id"].(string)).Key()] = fe["id"].(string)
			}
		}
		for _, pool := range children(sub(o, "properties"), "backendAddressPools") {
			w.showMembers(pool)
		}
	}
	for key, o := range w.docs {
		p := sub(o, "properties")
		if azure.ID(key).Is("Microsoft.Network/publicIPAddresses") {
			delete(p, "ipConfiguration")
			if at, ok := attached[key]; ok {
				p["ipConfiguration"] = object{"id": at}
			}
		}
	}
}

// showMembers writes the members into a pool.
func (w *subscription) showMembers(pool object) {
	var members []any
	for _, key := range slices.Sorted(maps.Keys(w.docs)) {
		if !strings.Contains(w.lower(key), `"`+strings.ToLower(pool["id"].(string))+`"`) {
			continue
		}
		switch {
		case strings.Contains(key, "/virtualmachines/"):
			members = append(members, object{"id": w.docs[key]["id"].(string) + "/networkInterfaces/nic/ipConfigurations/ipconfig"})
		case azure.ID(key).Is("Microsoft.Network/networkInterfaces"):
			members = append(members, object{"id": w.docs[key]["id"].(string) + "/ipConfigurations/ipconfig"})
		}
	}
	delete(sub(pool, "properties"), "backendIPConfigurations")
	if members != nil {
		sub(pool, "properties")["backendIPConfigurations"] = members
	}
}

// referrer is a resource that refers to id or something in it.
func (w *subscription) referrer(id azure.ID) string {
	for key := range w.docs {
		if azure.ID(key).Under(id) || id.Is("Microsoft.Network/loadBalancers") && azure.ID(key).Is("Microsoft.Network/publicIPAddresses") {
			continue
		}
		if t := w.lower(key); strings.Contains(t, id.Key()+`"`) || strings.Contains(t, id.Key()+"/") {
			return key
		}
	}
	return ""
}

// lower is a document's text in lower case.
func (w *subscription) lower(key string) string {
	o, ok := w.docs[key]
	if !ok {
		return ""
	}
	version := key + o["etag"].(string)
	if w.seen == nil {
		w.seen = map[string]string{}
	}
	if _, ok := w.seen[version]; !ok {
		w.seen[version] = strings.ToLower(string(text(o)))
	}
	return w.seen[version]
}

// dangling is a public IP or pool that body refers to and that is not there.
func (w *subscription) dangling(id azure.ID, body object) string {
	for word := range strings.SplitSeq(string(text(body)), `"`) {
		if !strings.HasPrefix(word, "/") {
			continue
		}
		ref := azure.ID(word)
		if strings.Contains(w.lower(id.Key()), `"`+ref.Key()+`"`) {
			continue // it was there before
		}
		switch {
		case ref.Is("Microsoft.Network/publicIPAddresses") && w.docs[ref.Key()] == nil:
			return word
		case ref.Is("Microsoft.Network/loadBalancers/backendAddressPools") && !ref.Under(id) &&
			!strings.Contains(w.lower(ref.TopLevel().Key()), `"`+ref.Key()+`"`):
			return word
		}
	}
	return ""
}

func sub(o object, key string) object {
	if o == nil {
		return object{}
	}
	s, ok := o[key].(object)
	if !ok {
		s = object{}
		o[key] = s
	}
	return s
}

func children(o object, key string) []object {
	list, _ := o[key].([]any)
	out := make([]object, 0, len(list))
	for _, x := range list {
		out = append(out, x.(object))
	}
	return out
}

func fill(o, defaults object) {
	for k, v := range defaults {
		if _, ok := o[k]; !ok {
			o[k] = v
		}
	}
}

// round is one plan of a commit.
type round struct {
	plan     plan.Plan
	problems []plan.Problem
}

// commit brings the input about as the loop does: plan, apply, and again while the
// plan waits for facts that applying brings.
func (w *subscription) commit(in loadbalancer.Input) ([]round, error) {
	const most = 5
	var rounds []round
	for range most {
		r, err := w.decide(in)
		rounds = append(rounds, r)
		if err != nil {
			return rounds, err
		}
		p := r.plan
		if p.Empty() {
			return rounds, nil
		}
		if err := w.apply(p); err != nil {
			return rounds, err
		}
		if len(p.Pending) == 0 {
			return rounds, nil
		}
	}
	return rounds, fmt.Errorf("no rest after %d rounds: %v", most, rounds[most-1].plan)
}

// decide plans from all there is, and from what a decision asks for: that has to be the same.
func (w *subscription) decide(in loadbalancer.Input) (round, error) {
	in.Have = w.snapshot()
	full, err := decided(in)
	if err != nil || w.trusting {
		return full, err
	}
	in.Have = gather(in, in.Have)
	r, err := decided(in)
	if d := cmp.Diff(full, r, cmp.AllowUnexported(round{})); err == nil && d != "" {
		err = fmt.Errorf("what is decided from all there is (-), and from what was asked for (+):\n%s", d)
	}
	return r, err
}

func decided(in loadbalancer.Input) (round, error) {
	g, problems, err := loadbalancer.Desired(in)
	if err != nil {
		return round{}, err
	}
	p, err := plan.Diff(in.Have, g)
	return round{p, problems}, err
}

// writes counts the steps of a commit's rounds.
func writes(rounds []round) (n int) {
	for _, r := range rounds {
		n += len(r.plan.Steps)
	}
	return n
}
