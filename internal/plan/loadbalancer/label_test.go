package loadbalancer_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan/loadbalancer"
)

const mineID = network + "publicIPAddresses/mine"

// labels is a Service at a foreign public IP that asks for a DNS label, "-" for none.
func labels(name, label string, port int32) *v1.Service {
	s := service(name, tcp(port, 30000+port))
	s.Annotations = map[string]string{"service.beta.kubernetes.io/azure-pip-name": "mine"}
	if label != "-" {
		s.Annotations["service.beta.kubernetes.io/azure-dns-label-name"] = label
	}
	return s
}

// namedSubscription has a foreign public IP, where Services were served one after another.
func namedSubscription(t *testing.T, label string, served ...*v1.Service) *subscription {
	t.Helper()
	w := newSubscription(2)
	w.put(mineID,
		parse(`{"location":"westeurope","sku":{"name":"Standard"},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"20.7.7.7"}}`))
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true}
	for i, s := range served {
		in.Services, in.Others = []loadbalancer.Service{{Service: s}}, served[:i]
		if _, err := w.commit(in); err != nil {
			t.Fatal(err)
		}
	}
	w.label(label)
	return w
}

// label sets the DNS label of the public IP by hand, "-" for the label that it has already.
func (w *subscription) label(label string) {
	if label != "-" {
		sub(sub(w.docs[azure.ID(mineID).Key()], "properties"), "dnsSettings")["domainNameLabel"] = label
	}
}

func (w *subscription) labelNow() string {
	label, _ := sub(sub(w.docs[azure.ID(mineID).Key()], "properties"), "dnsSettings")["domainNameLabel"].(string)
	return label
}

// TestOneLabelAtAForeignPublicIP checks a foreign public IP, which has no tag that names the owner of
// its DNS label. The Service that was served there first keeps it, whatever Services are in the
// commit.
func TestOneLabelAtAForeignPublicIP(t *testing.T) {
	older := func(s *v1.Service) *v1.Service {
		s.CreationTimestamp.Time = time.Unix(1, 0)
		return s
	}
	younger := func(s *v1.Service) *v1.Service {
		s.CreationTimestamp.Time = time.Unix(2, 0)
		return s
	}
	elsewhere := labels("a", "web", 80)
	elsewhere.Annotations["service.beta.kubernetes.io/azure-pip-name"] = "another"
	for name, c := range map[string]struct {
		served  []*v1.Service // before, as they were then
		label   string        // set by hand then, "-" for none
		now     []*v1.Service // of a commit
		others  []*v1.Service
		gone    []*v1.Service
		refused string // "Service: message" in short, "" for none
		want    string // the label that is there then
	}{
		"one alone": {now: []*v1.Service{labels("a", "web", 80)}, label: "-", want: "web"},
		"a newcomer": {served: []*v1.Service{labels("b", "web", 80)}, label: "-", now: []*v1.Service{labels("a", "www", 81)},
			others: []*v1.Service{labels("b", "web", 80)}, refused: "a www b web", want: "web"},
		"together": {served: []*v1.Service{labels("b", "web", 80)}, label: "-",
			now: []*v1.Service{labels("a", "www", 81), labels("b", "web", 80)}, refused: "a www b web", want: "web"},
		"two newcomers": {label: "-", now: []*v1.Service{labels("a", "www", 81), labels("b", "web", 80)}, refused: "b web a www",
			want: "www"},
		"guests of one": {label: "-", now: []*v1.Service{labels("a", "-", 80), labels("b", "web", 81), labels("c", "www", 82)},
			refused: "c www b web", want: "web"},
		"the same": {served: []*v1.Service{labels("a", "web", 80)}, label: "-", now: []*v1.Service{labels("b", "web", 81)},
			others: []*v1.Service{labels("a", "web", 80)}, want: "web"},
		"none asked for": {served: []*v1.Service{labels("a", "web", 80)}, label: "-", now: []*v1.Service{labels("b", "-", 81)},
			others: []*v1.Service{labels("a", "web", 80)}, want: "web"},
		"to be taken away": {served: []*v1.Service{labels("a", "web", 80)}, label: "-", now: []*v1.Service{labels("b", "", 81)},
			others: []*v1.Service{labels("a", "web", 80)}, refused: "b  a web", want: "web"},
		"the owner changes": {served: []*v1.Service{labels("a", "web", 80)}, label: "-", now: []*v1.Service{labels("a", "www", 80)},
			others: []*v1.Service{labels("b", "kaz", 81)}, want: "www"},
		"the owner will change": {served: []*v1.Service{labels("a", "web", 80)}, label: "-", now: []*v1.Service{labels("b", "kaz", 81)},
			others: []*v1.Service{labels("a", "www", 80)}, refused: "b kaz a www", want: "web"},
		"the owner goes": {served: []*v1.Service{labels("a", "web", 80)}, label: "-", gone: []*v1.Service{labels("a", "web", 80)},
			now: []*v1.Service{labels("b", "www", 81)}, want: "www"},
		"the owner moves": {served: []*v1.Service{labels("a", "web", 80)}, label: "-", now: []*v1.Service{labels("b", "www", 81)},
			others: []*v1.Service{elsewhere}, want: "www"},
		"set by hand": {served: []*v1.Service{labels("a", "-", 80)}, label: "kaz", now: []*v1.Service{labels("b", "www", 81)},
			others: []*v1.Service{labels("a", "-", 80)}, want: "www"},
		"the second one's stays": {served: []*v1.Service{labels("a", "-", 80), labels("b", "www", 81)}, label: "-",
			now: []*v1.Service{labels("a", "web", 80), labels("b", "www", 81)}, refused: "a web b www", want: "www"},
		"and alone": {served: []*v1.Service{labels("a", "-", 80), labels("b", "www", 81)}, label: "-",
			now: []*v1.Service{labels("a", "web", 80)}, others: []*v1.Service{labels("b", "www", 81)}, refused: "a web b www", want: "www"},
		"without an owner": {
			served: []*v1.Service{labels("a", "-", 80), labels("b", "-", 81)}, label: "kaz",
			now: []*v1.Service{younger(labels("a", "web", 80)), older(labels("b", "www", 81))}, refused: "a web b www", want: "www",
		},
		"without an owner, by name": {
			served: []*v1.Service{labels("a", "-", 80), labels("b", "-", 81)}, label: "kaz",
			now: []*v1.Service{labels("b", "www", 81)}, others: []*v1.Service{labels("a", "web", 80)}, refused: "b www a web", want: "kaz",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := namedSubscription(t, c.label, c.served...)
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Others: c.others, Complete: true}
			for _, s := range c.gone {
				in.Services = append(in.Services, loadbalancer.Service{Service: s, Gone: true})
			}
			for _, s := range c.now {
				in.Services = append(in.Services, loadbalancer.Service{Service: s})
			}
			check := func(when string) {
				t.Helper()
				rounds, err := w.commit(in)
				if err != nil {
					t.Fatal(err)
				}
				var refused []string
				for _, p := range rounds[0].problems {
					if !p.Warning {
						refused = append(refused, p.Object+" "+p.Reason+" "+p.Message)
					}
				}
				var want []string
				if f := strings.Split(c.refused, " "); len(f) == 4 {
					want = []string{"default/" + f[0] +
						` DNSLabelInUse annotation service.beta.kubernetes.io/azure-dns-label-name: "` + f[1] +
						`" cannot be set, Service default/` + f[2] + ` asks for "` + f[3] +
						`" at public IP mine, allowed is one label for all of them`}
				}
				if d := cmp.Diff(want, refused); d != "" {
					t.Errorf("%s refused (-want +got):\n%s", when, d)
				}
				if got := w.labelNow(); got != c.want {
					t.Errorf("%s the label is %q, want %q", when, got, c.want)
				}
			}
			check("at first")
			check("again")
		})
	}
}

// TestOwnerOfALabel checks that the step at a foreign public IP names the Service that asks for the
// label.
func TestOwnerOfALabel(t *testing.T) {
	a, b := labels("a", "-", 80), labels("b", "web", 81)
	w := namedSubscription(t, "-", a)
	rounds, err := w.commit(loadbalancer.Input{Config: config(), Nodes: machines(2),
		Services: []loadbalancer.Service{{Service: a}, {Service: b}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range rounds[0].plan.Steps {
		if s.ID == mineID {
			if d := cmp.Diff([]string{"default/b"}, s.For); d != "" || !strings.Contains(s.Why, "default/b") {
				t.Errorf("%s (-want +got):\n%s", s, d)
			}
			return
		}
	}
	t.Error("the public IP was not named")
}

// TestLabelFollowsItsServiceToASharedAddress checks that a DNS label is written to a public IP when the public IP that
// had it is gone. This holds whatever another Service there, which is planned first, asks for.
func TestLabelFollowsItsServiceToASharedAddress(t *testing.T) {
	const label = "service.beta.kubernetes.io/azure-dns-label-name"
	a, b := service("a", tcp(80, 30080)), service("b", tcp(81, 30081))
	b.Annotations = map[string]string{label: "web"}
	in := loadbalancer.Input{Config: config(), Nodes: machines(2), Complete: true,
		Services: []loadbalancer.Service{{Service: a}, {Service: b}}}
	w := newSubscription(2)
	if _, err := w.commit(in); err != nil {
		t.Fatal(err)
	}
	const own = "kubernetes-a0000006111112222333344445555666"
	a.Annotations = map[string]string{label: ""}
	b.Annotations["service.beta.kubernetes.io/azure-pip-name"] = own
	rounds, err := w.commit(in)
	if err != nil || len(rounds) < 2 {
		t.Fatalf("%d rounds, %v", len(rounds), err)
	}
	const want = "public IP " + own + " gets the DNS label of kubernetes-a0000006211112222333344445555666, which goes [default/b]"
	if first := rounds[0].plan; !slices.Contains(first.Pending, want) {
		t.Errorf("in the first round waits %q, want %q", first.Pending, want)
	}
	named, _ := sub(sub(w.docs[azure.ID(network+"publicIPAddresses/"+own).Key()], "properties"), "dnsSettings")["domainNameLabel"].(string)
	if named != "web" {
		t.Errorf("at last the label is %q, want web", named)
	}
}
