package loadbalancer_test

import (
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/problem"
)

// noNames are values that users write where a name is wanted.
var noNames = []string{"no/group", "a%2fb", "../kaz", "kaz?x=1", "kaz#", "a b/c", "x/nodes", "/subscriptions/s/resourceGroups/kaz"}

// TestWhatIsNoNameIsItsServicesAlone checks that a value that is not a valid name leads to no request,
// and to a problem of its own Service only.
func TestWhatIsNoNameIsItsServicesAlone(t *testing.T) {
	const internal, link = "service.beta.kubernetes.io/azure-load-balancer-internal", "service.beta.kubernetes.io/azure-pls-create"
	for name, besides := range map[string]map[string]string{
		key.PublicIPGroup.Name:  {},
		key.PublicIPName.Name:   {},
		key.InternalSubnet.Name: {internal: "true"},
		key.LinkGroup.Name:      {internal: "true", link: "true"},
		key.LinkSubnet.Name:     {internal: "true", link: "true"},
		key.LinkName.Name:       {internal: "true", link: "true"},
	} {
		for _, value := range noNames {
			w := newSubscription(2)
			web, api := service("web", tcp(80, 30080)), service("api", tcp(81, 30081))
			web.Annotations = map[string]string{name: value}
			maps.Copy(web.Annotations, besides)
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Services: []loadbalancer.Service{{Service: web}, {Service: api}}}
			onlyWellFormed(t, w, in)
			rounds, err := w.commit(in)
			if err != nil {
				t.Fatalf("%s=%q: %v", name, value, err)
			}
			found := rounds[0].problems
			if len(found) != 1 || found[0].Object != "default/web" || found[0].Warning ||
				found[0].Reason != problem.Annotation ||
				!strings.Contains(found[0].Message, name+`: "`+value+`" is not allowed`) ||
				!strings.Contains(found[0].Message, "allowed is") {
				t.Errorf("%s=%q: found %v", name, value, found)
			}
			in.Have = w.snapshot()
			status, err := loadbalancer.Status(in)
			if err != nil || len(status["default/api"]) != 1 || len(status["default/web"]) != 0 {
				t.Errorf("%s=%q: served are %v, %v", name, value, status, err)
			}
			in.Services = []loadbalancer.Service{{Service: web, Gone: true}}
			onlyWellFormed(t, w, in)
			if rounds, err = w.commit(in); err != nil || len(rounds[0].problems) > 0 {
				t.Errorf("%s=%q: it does not go: %v, %v", name, value, err, rounds[0].problems)
			}
		}
	}
}

// TestNotesThatAreNoNamesAreLeftOut checks that an invalid name in a note, which no user can correct,
// delays neither the Service nor others.
func TestNotesThatAreNoNamesAreLeftOut(t *testing.T) {
	for _, value := range append(noNames, "") {
		noteThatIsNoName(t, key.Note{Of: key.PublicIPs, Group: value})
		noteThatIsNoName(t, key.Note{Of: key.PrivateLinks, Group: value})
	}
}

func noteThatIsNoName(t *testing.T, note key.Note) {
	t.Helper()
	value, w := note.Group, newSubscription(2)
	web := service("web", tcp(80, 30080))
	web.Status.Conditions = []metav1.Condition{note.Condition()}
	in := loadbalancer.Input{Config: config(), Nodes: machines(2),
		Services: []loadbalancer.Service{{Service: web, Groups: []key.Note{note}}}}
	group := w.docs[in.Config.LoadBalancer().Parent().Resource("Microsoft.Network/networkSecurityGroups",
		in.Config.SecurityGroupName).Key()]
	fill(group, object{"tags": object{}})
	group["tags"].(object)["kaz-"+in.Config.ClusterName+"-public-ips-in-"+value] = "true"
	for _, gone := range []bool{false, true} {
		in.Services[0].Gone = gone
		onlyWellFormed(t, w, in)
		rounds, err := w.commit(in)
		if err != nil {
			t.Fatalf("%q: %v", value, err)
		}
		if len(rounds[0].problems) > 0 {
			t.Errorf("%q: %v", value, rounds[0].problems)
		}
		in.Have = w.snapshot()
		if status, err := loadbalancer.Status(in); err != nil || gone == (len(status["default/web"]) > 0) {
			t.Errorf("%q, gone %v: %v, %v", value, gone, status, err)
		}
	}
}

// onlyWellFormed checks that only ids are asked for that are some.
func onlyWellFormed(t *testing.T, w *subscription, in loadbalancer.Input) {
	t.Helper()
	for _, have := range []plan.Snapshot{plan.NewSnapshot(), w.snapshot()} {
		in.Have = have
		ids, lists := loadbalancer.Needs(in)
		for _, q := range lists {
			ids = append(ids, q.Scope)
		}
		for _, id := range ids {
			if _, err := azure.ParseID(string(id)); err != nil {
				t.Errorf("%v is asked for: %v", in.Services[0].Annotations, err)
			}
		}
	}
}
