package loadbalancer_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/problem"
)

// oddity is what a Service says that is not as the reference has it.
type oddity struct {
	annotations map[string]string // without what all begin with
	edit        func(*v1.Service)
	config      func(*loadbalancer.Config)
	wants       []string // in the only warning; none for no warning
}

func oddities() map[string]oddity {
	two := func(c *loadbalancer.Config) {
		c.Balancers = []loadbalancer.Balancer{{Name: "kaz", AllowPlacement: true}, {Name: "lb2", AllowPlacement: true}}
		c.PoolByIP = true
	}
	linked := map[string]string{"azure-load-balancer-internal": "true", "azure-pls-create": "true"}
	link := func(name, value string) map[string]string {
		all := maps.Clone(linked)
		all[name] = value
		return all
	}
	local := func(s *v1.Service) {
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = v1.ServiceExternalTrafficPolicyLocal, 32000
	}
	return map[string]oddity{
		"mistyped": {annotations: map[string]string{"azure-load-balancer-tpc-idle-timeout": "10"},
			wants: []string{"UnknownAnnotation", `azure-load-balancer-tpc-idle-timeout: "10" is ignored`,
				"but service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"}},
		"like nothing": {annotations: map[string]string{"azure-make-it-fast": "true"},
			wants: []string{"UnknownAnnotation", `azure-make-it-fast: "true" is ignored`, "and none is similar"}},
		"mistyped at a port": {annotations: map[string]string{"port_80_health-probe_intervall": "9"},
			wants: []string{"UnknownAnnotation", "but service.beta.kubernetes.io/port_80_health-probe_interval"}},
		"port by name": {annotations: map[string]string{"port_http_no_lb_rule": "true"},
			wants: []string{"UnknownAnnotation", "http is no port of the Service, allowed is one of [80]"}},
		"another port": {annotations: map[string]string{"port_99_health-probe_interval": "9"},
			wants: []string{"UnknownAnnotation", "99 is no port of the Service"}},
		"health check port": {annotations: map[string]string{"port_32000_health-probe_interval": "9"}, edit: local},
		"retired": {annotations: map[string]string{"azure-load-balancer-mode": "__auto__",
			"azure-shared-securityrule": "true"}},
		"of others": {annotations: map[string]string{"aws-load-balancer-type": "nlb"}},
		"all ports in public": {annotations: map[string]string{"azure-load-balancer-enable-high-availability-ports": "true"},
			wants: []string{"UnheededAnnotation",
				`enable-high-availability-ports: "true" is ignored without annotation service.beta.kubernetes.io/azure-load-balancer-internal: "true"`}},
		"not all in public": {annotations: map[string]string{"azure-load-balancer-enable-high-availability-ports": "false"}},
		"load balancer": {annotations: map[string]string{"azure-load-balancer-configurations": "kaz,nope"}, config: two,
			wants: []string{"InvalidAnnotation", `configurations: "nope" left out`, "kaz, lb2"}},
		"key in another case": {annotations: map[string]string{"Azure-Load-Balancer-Configurations": "lb2"}, config: two},
		"one load balancer":   {annotations: map[string]string{"azure-load-balancer-configurations": "Kubernetes"}},
		"another than the one": {annotations: map[string]string{"azure-load-balancer-configurations": "lb2"},
			wants: []string{"InvalidAnnotation", `configurations: "lb2" left out, allowed are configured load balancers: kubernetes`}},
		"the one and another": {annotations: map[string]string{"azure-load-balancer-configurations": "kubernetes,nope"},
			wants: []string{"InvalidAnnotation", `configurations: "nope" left out, allowed are configured load balancers: kubernetes`}},
		"kaz's own tags": {annotations: map[string]string{"azure-pip-tags": "team=x,K8s-Azure-Service=a/b"},
			wants: []string{"InvalidTags", `azure-pip-tags: "K8s-Azure-Service=a/b" is left out`, "other than k8s-azure-service"}},
		"IPv6 address": {annotations: map[string]string{"azure-load-balancer-ipv6": "nonsense"},
			wants: []string{"InvalidAddress", `azure-load-balancer-ipv6: "nonsense"`, "has no IPv6 address"}},
		"IPv6 public IP": {annotations: map[string]string{"azure-pip-name-ipv6": "no/name"},
			wants: []string{"InvalidAnnotation", `azure-pip-name-ipv6: "no/name"`, "the Service is not refused for it"}},
		"IPv6 prefix": {annotations: map[string]string{"azure-pip-prefix-id-ipv6": "prefix"},
			wants: []string{"InvalidAnnotation", `azure-pip-prefix-id-ipv6: "prefix"`, "the Service is not refused for it"}},
		"good IPv6 address": {annotations: map[string]string{"azure-load-balancer-ipv6": "2603:1::9"}},
		"probe's path": {annotations: map[string]string{"azure-load-balancer-health-probe-request-path": "nopath"},
			wants: []string{"InvalidAnnotation", `health-probe-request-path: "nopath"`, "does not begin with /"}},
		"port's path": {annotations: map[string]string{"port_80_health-probe_request-path": "/a b?x#y"},
			wants: []string{"InvalidAnnotation", `port_80_health-probe_request-path: "/a b?x#y"`, "has a blank or a #"}},
		"path with a query": {annotations: map[string]string{"azure-load-balancer-health-probe-request-path": "/a?x=%20y"}},
		"routing": {annotations: map[string]string{"azure-pip-ip-tags": "RoutingPreference=Nonsense"},
			wants: []string{"InvalidAnnotation", `azure-pip-ip-tags: "RoutingPreference=Nonsense"`, "known is Internet"}},
		"type of routing": {annotations: map[string]string{"azure-pip-ip-tags": "routingpreferences=Internet"},
			wants: []string{"InvalidAnnotation", `azure-pip-ip-tags: "routingpreferences=Internet"`, "known is RoutingPreference"}},
		"good IP tags": {annotations: map[string]string{"azure-pip-ip-tags": "RoutingPreference=Internet,FirstPartyUsage=/Unprivileged"}},
		"link's subscriptions": {annotations: link("azure-pls-visibility", "foo"),
			wants: []string{"InvalidAnnotation", `"foo" is no subscription id`}},
		"link's approval": {annotations: link("azure-pls-auto-approval", "bar"),
			wants: []string{"InvalidAnnotation", `"bar" is no subscription id`}},
		"link's names": {annotations: link("azure-pls-fqdns", "a.example bad_domain! x"),
			wants: []string{"InvalidAnnotation", `"bad_domain!" is no domain name`}},
		"link without a request": {annotations: map[string]string{"azure-pls-resource-group": "no/group"},
			wants: []string{"UnheededAnnotation", `azure-pls-resource-group: "no/group" is ignored`}},
		"group of no public IP": {annotations: map[string]string{"azure-load-balancer-internal": "true",
			"azure-load-balancer-resource-group": "no/group"},
			wants: []string{"UnheededAnnotation", `azure-load-balancer-resource-group: "no/group" is ignored`}},
		"interval of no probe": {annotations: map[string]string{"port_80_no_probe_rule": "true",
			"port_80_health-probe_interval": "soon"},
			wants: []string{"InvalidAnnotation", `port_80_health-probe_interval: "soon"`, "not refused for it"}},
		"switch": {annotations: map[string]string{"azure-load-balancer-internal": "yes"},
			wants: []string{"InvalidAnnotation",
				`azure-load-balancer-internal: "yes" is not allowed (it counts as false), allowed is true or false, true in lower case; the Service is not refused for it`}},
		"switch of a port": {annotations: map[string]string{"port_80_no_probe_rule": "1"},
			wants: []string{"InvalidAnnotation", `port_80_no_probe_rule: "1"`, "allowed is true or false"}},
		"switch that is off": {annotations: map[string]string{"azure-load-balancer-internal": " False", "azure-pls-create": ""}},
		"probe's protocol": {annotations: map[string]string{"azure-load-balancer-health-probe-protocol": "htpp"},
			wants: []string{"InvalidAnnotation", `health-probe-protocol: "htpp" is not allowed (it counts as tcp)`,
				"allowed is tcp, http or https"}},
		"port's protocol": {annotations: map[string]string{"port_80_health-probe_protocol": "grpc"},
			wants: []string{"InvalidAnnotation", `port_80_health-probe_protocol: "grpc"`}},
		"appProtocol":        {edit: func(s *v1.Service) { s.Spec.Ports[0].AppProtocol = new("kubernetes.io/h2c") }},
		"good link":          {annotations: link("azure-pls-visibility", "*")},
		"good names":         {annotations: link("azure-pls-fqdns", "a.example. xn--a b-2.example")},
		"good subscriptions": {annotations: link("azure-pls-auto-approval", "11111111-2222-3333-4444-55555555555A")},
	}
}

// TestIgnoredSettingsAreReported checks that settings without an effect, or not as in the reference,
// are reported, and that the Service is served as before.
func TestIgnoredSettingsAreReported(t *testing.T) {
	for name, o := range oddities() {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			s := service("web", tcp(80, 30080))
			s.Annotations = map[string]string{}
			for name, value := range o.annotations {
				s.Annotations["service.beta.kubernetes.io/"+name] = value
			}
			in := loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: s}}}
			if o.edit != nil {
				o.edit(s)
			}
			if o.config != nil {
				o.config(&in.Config)
			}
			rounds, err := w.commit(in)
			if err != nil {
				t.Fatal(err)
			}
			found := rounds[0].problems
			if len(o.wants) == 0 && len(found) > 0 || len(o.wants) > 0 &&
				(len(found) != 1 || !found[0].Warning || found[0].Object != "default/web") {
				t.Fatalf("warned of %v", found)
			}
			for _, want := range o.wants {
				if text := found[0].Reason + " " + found[0].Message; !strings.Contains(text, want) {
					t.Errorf("warned %q, and not of %q", text, want)
				}
			}
			in.Have = w.snapshot()
			if status, err := loadbalancer.Status(in); err != nil || len(status["default/web"]) != 1 {
				t.Errorf("served at %v, %v", status, err)
			}
		})
	}
}

// TestTooManyTags checks that tags beyond Azure's limit for a public IP are refused before a request,
// also together with foreign tags. A foreign public IP gets none, and its Service gets a warning.
func TestTooManyTags(t *testing.T) {
	tags := func(from, n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprint("t", from+i, "=x"))
		}
		return strings.Join(all, ",")
	}
	for name, c := range map[string]struct {
		tags       string
		configured azure.Tags
		change     string // what is asked for afterwards
		refused    bool
	}{
		"as many as there can be": {tags: tags(0, 48)},
		"one more":                {tags: tags(0, 49), refused: true},
		"configured ones":         {tags: tags(0, 48), configured: azure.Tags{"team": "x"}, refused: true},
		"the same as configured":  {tags: tags(0, 48), configured: azure.Tags{"T1": "y"}},
		"beside those that stay":  {tags: tags(0, 30), change: tags(30, 30), refused: true},
		"the same again":          {tags: tags(0, 48), change: tags(0, 47)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			s := service("web", tcp(80, 30080))
			in := loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: s}}}
			in.Config.Tags = c.configured
			var found []plan.Problem
			for _, said := range []string{c.tags, c.change} {
				if said == "" {
					continue
				}
				s.Annotations = map[string]string{key.PublicIPTags.Name: said}
				rounds, err := w.commit(in)
				if err != nil {
					t.Fatal(err)
				}
				found = rounds[0].problems
			}
			refused := len(found) == 1 && !found[0].Warning && found[0].Reason == problem.Limit &&
				strings.Contains(found[0].Message, key.PublicIPTags.Name) && strings.Contains(found[0].Message, "allowed by Azure are 50")
			if refused != c.refused || !refused && len(found) > 0 {
				t.Errorf("found %v", found)
			}
		})
	}
	w := newSubscription(2)
	w.put(network+"publicIPAddresses/mine",
		parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"20.9.9.9"}}`))
	s := service("web", tcp(80, 30080))
	s.Annotations = map[string]string{key.PublicIPTags.Name: tags(0, 60), key.PublicIPName.Name: "mine"}
	rounds, err := w.commit(loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: s}}})
	if found := rounds[0].problems; err != nil || len(found) != 1 || !found[0].Warning ||
		!strings.Contains(found[0].Message, "is ignored at public IP mine") {
		t.Errorf("at a foreign one: %v, %v", found, err)
	}
}

// TestTagsOfAForeignPublicIP checks that tags that a foreign public IP already has are not reported as
// missing.
func TestTagsOfAForeignPublicIP(t *testing.T) {
	const mine = `{"location":"westeurope","sku":{"name":"Standard"},"tags":{"Env":"prod","team":"kaz"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"20.9.9.9"}}`
	for asked, reported := range map[string]int{"env=prod": 0, "env=prod,team=kaz": 0, "env=test": 1, "env=prod,more=1": 1} {
		w := newSubscription(2)
		w.put(network+"publicIPAddresses/mine", parse(mine))
		s := service("web", tcp(80, 30080))
		s.Annotations = map[string]string{key.PublicIPTags.Name: asked, key.PublicIPName.Name: "mine"}
		rounds, err := w.commit(loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: s}}})
		if err != nil || len(rounds[0].problems) != reported {
			t.Errorf("%s: %v, %v", asked, rounds[0].problems, err)
		}
	}
}

// TestIPTagsThatCannotBeHad checks that IP tags that a public IP does not have and cannot get are
// reported to the Service that asks for them.
func TestIPTagsThatCannotBeHad(t *testing.T) {
	const mine = `{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"20.9.9.9","ipTags":[{"ipTagType":"RoutingPreference","tag":"Internet"}]}}`
	for asked, reported := range map[string]bool{"RoutingPreference=Internet": false, "FirstPartyUsage=/Sql": true} {
		w := newSubscription(2)
		w.put(network+"publicIPAddresses/mine", parse(mine))
		s := service("web", tcp(80, 30080))
		s.Annotations = map[string]string{key.IPTags.Name: asked, key.PublicIPName.Name: "mine"}
		rounds, err := w.commit(loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: s}}})
		if err != nil {
			t.Fatal(err)
		}
		found := rounds[0].problems
		if is := len(found) == 1 && found[0].Warning && strings.Contains(found[0].Message, asked+`" is ignored at public IP mine`) &&
			strings.Contains(found[0].Message, "its IP tags are RoutingPreference=Internet"); is != reported || !reported &&
			len(found) > 0 {
			t.Errorf("%s: %v", asked, found)
		}
	}
}

// TestIgnoredSettingsAlone checks that a setting that has an effect together with another annotation
// only is reported where that one is absent, and nowhere else.
func TestIgnoredSettingsAlone(t *testing.T) {
	const internal, link = "service.beta.kubernetes.io/azure-load-balancer-internal", "service.beta.kubernetes.io/azure-pls-create"
	for name, beside := range map[string]string{
		"azure-load-balancer-internal-subnet": internal, "azure-pls-name": link, "azure-pls-fqdns": link, "azure-pls-resource-group": link,
	} {
		for _, on := range []string{"", "false", "true"} {
			s := service("web", tcp(80, 30080))
			s.Annotations = map[string]string{"service.beta.kubernetes.io/" + name: "apps", internal: "true", beside: on}
			reported := toldUnheeded(t, s)
			if want := on != "true"; (len(reported) == 1) != want || want &&
				!strings.Contains(reported[0].Message, name+`: "apps" is ignored without annotation `+beside) {
				t.Errorf("%s beside %s=%q: %v", name, beside, on, reported)
			}
		}
	}
	for _, name := range []string{"azure-pip-name", "azure-dns-label-name", "azure-pip-tags", "azure-pip-prefix-id",
		"azure-load-balancer-resource-group"} {
		s := service("web", tcp(80, 30080))
		s.Annotations = map[string]string{"service.beta.kubernetes.io/" + name: "apps", internal: "true"}
		if reported := toldUnheeded(t, s); len(reported) != 1 || !strings.Contains(reported[0].Message, name) || !reported[0].Warning {
			t.Errorf("%s of an internal Service: %v", name, reported)
		}
	}
}

// TestAFurtherAddressOfAnotherServiceIsReported checks that a further address of another Service is reported. It is not
// reported if a rule for all ports, or a foreign rule, takes its packets at the frontend. The annotation has its effect
// in both cases.
func TestAFurtherAddressOfAnotherServiceIsReported(t *testing.T) {
	const public, private = "20.1.0.2", "10.0.0.100"
	everywhere := map[string]string{key.Internal.Name: "true", key.HAPorts.Name: "true", key.IPv4.Name: private}
	for name, c := range map[string]struct {
		further  string // what api asks for
		web      map[string]string
		edit     func(*v1.Service)
		hand     func(lb object) // changes the load balancer by hand
		goes     bool            // web does
		reported string          // port, "" for nothing
	}{
		"public":        {further: public, reported: "81/TCP"},
		"of several":    {further: "8.1.1.1, " + public, reported: "81/TCP"},
		"its very port": {further: public, edit: func(s *v1.Service) { s.Spec.Ports[0].Port = 80 }, reported: "80/TCP"},
		"private": {web: map[string]string{key.Internal.Name: "true", key.IPv4.Name: private}, further: private,
			reported: "81/TCP"},
		"of no Service":     {further: "8.1.1.1"},
		"asked for by both": {web: map[string]string{key.AdditionalIPs.Name: "8.1.1.1"}, further: "8.1.1.1"},
		"shared":            {further: public, edit: func(s *v1.Service) { s.Spec.LoadBalancerIP = public }},
		"with all ports":    {web: everywhere, further: private},
		"that is given up":  {further: public, goes: true},
		"with a foreign rule": {further: public, hand: func(p object) {
			p["inboundNatRules"] = []any{object{"name": "mine", "properties": object{
				"protocol": "Tcp", "frontendPort": float64(81), "backendPort": float64(81),
				"frontendIPConfiguration": object{"id": lbID + "/frontendIPConfigurations/" + baseOf(service("web"))},
			}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSubscription(2)
			web := service("web", tcp(80, 30080))
			web.Annotations = c.web
			in := loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: web}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if c.hand != nil {
				c.hand(sub(w.docs[azure.ID(lbID).Key()], "properties"))
			}
			s := service("api", tcp(81, 30081))
			s.Annotations = map[string]string{key.AdditionalIPs.Name: c.further}
			if c.edit != nil {
				c.edit(s)
			}
			in.Services = []loadbalancer.Service{{Service: s}}
			if in.Others = []*v1.Service{web}; c.goes {
				in.Services, in.Others = append(in.Services, loadbalancer.Service{Service: web, Gone: true}), nil
			}
			for _, when := range []string{"new", "served"} {
				rounds, err := w.commit(in)
				if err != nil {
					t.Fatal(err)
				}
				found := rounds[len(rounds)-1].problems
				is := len(found) == 1 && found[0].Warning && found[0].Object == "default/api" &&
					strings.Contains(found[0].Message,
						`is the address of Service default/web, where nothing forwards the packets of port `+c.reported)
				if is != (c.reported != "") || !is && len(found) > 0 {
					t.Errorf("%s: reported %v", when, found)
				}
			}
			in.Have = w.snapshot()
			if status, err := loadbalancer.Status(in); err != nil || len(status["default/api"]) < 2 {
				t.Errorf("served at %v, %v", status, err)
			}
		})
	}
}

func toldUnheeded(t *testing.T, s *v1.Service) []plan.Problem {
	t.Helper()
	w := newSubscription(2)
	_, found, err := loadbalancer.Desired(loadbalancer.Input{Config: config(), Nodes: machines(2),
		Services: []loadbalancer.Service{{Service: s}}, Have: w.snapshot()})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(p plan.Problem) bool { return p.Reason != problem.Unheeded })
}
