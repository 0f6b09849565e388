package loadbalancer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/problem"
)

const servedBy = "k8s-azure-service"

// sharing returns a subscription with a Service web, and an input that adds guests at its address. The guests' keys have 19
// characters each. The keys of web and 12 guests, with commas between, have 251 characters together.
func sharing(t *testing.T, guests int) (*subscription, loadbalancer.Input) {
	t.Helper()
	w := newSubscription(2)
	in := loadbalancer.Input{Config: config(), Complete: true, Services: []loadbalancer.Service{{Service: service("web", tcp(80, 30080))}}}
	rounds, err := w.commit(in)
	if err != nil || len(rounds[0].problems) > 0 {
		t.Fatal(rounds, err)
	}
	for i := range guests {
		in.Services = append(in.Services, guest(i))
	}
	return w, in
}

func guest(i int) loadbalancer.Service {
	s := service(fmt.Sprintf("guest-%05d", i), tcp(int32(81+i), int32(30081+i)))
	s.Spec.LoadBalancerIP = "20.1.0.2"
	return loadbalancer.Service{Service: s}
}

// refusals are the problems of a commit, by Service.
func refusals(t *testing.T, w *subscription, in loadbalancer.Input) map[string]string {
	t.Helper()
	rounds, err := w.commit(in)
	if err != nil {
		t.Fatal(err)
	}
	refused := map[string]string{}
	for _, p := range rounds[len(rounds)-1].problems {
		if !p.Warning {
			refused[p.Object] = p.Reason + ": " + p.Message
		}
	}
	return refused
}

func (w *subscription) tagsOfWeb() object {
	return w.docs[azure.ID(network+"publicIPAddresses/kubernetes-"+baseOf(service("web"))).Key()]["tags"].(object)
}

// TestServicesAtOneAddressAreListedInATag checks Azure's limit of 256 characters for a tag's value. A
// Service that does not fit into the tag that lists the Services of a public IP gets a problem; listed
// Services stay.
func TestServicesAtOneAddressAreListedInATag(t *testing.T) {
	w, in := sharing(t, 13)
	list := func() []string { return strings.Split(w.tagsOfWeb()[servedBy].(string), ",") }
	refused := refusals(t, w, in)
	why := refused["default/guest-00012"]
	if len(refused) != 1 || !strings.HasPrefix(why, problem.Limit) || !strings.Contains(why, "256") ||
		!strings.Contains(why, servedBy) {
		t.Fatalf("refused are %v", refused)
	}
	if n := len(list()); n != 13 || list()[0] != "default/web" {
		t.Errorf("the tag lists %d: %v", n, list())
	}
	last := in.Services[13]
	all := in.Services[:13]

	in.Services = []loadbalancer.Service{last}
	for _, s := range all {
		in.Others = append(in.Others, s.Service)
	}
	if refused := refusals(t, w, in); len(refused) != 1 {
		t.Errorf("alone: refused are %v", refused)
	}

	in.Others = nil
	in.Services = slices.Clone(all) // listed Services may change
	changed := guest(3)
	changed.Spec.Ports[0].Port = 8080
	in.Services[4] = changed
	if refused := refusals(t, w, in); len(refused) > 0 {
		t.Errorf("one changes: refused are %v", refused)
	}

	leaves := guest(5)
	leaves.Gone = true
	in.Services = append(slices.Delete(slices.Clone(in.Services), 6, 7), leaves, last)
	if refused := refusals(t, w, in); len(refused) > 0 || !slices.Contains(list(), last.Key()) || slices.Contains(list(), leaves.Key()) {
		t.Errorf("one is deleted, one comes: refused are %v, listed %v", refused, list())
	}

	moves := guest(7)
	moves.Spec.LoadBalancerIP = ""
	in.Services = slices.DeleteFunc(in.Services, func(s loadbalancer.Service) bool { return s.Gone || s.Name == moves.Name })
	in.Services = append(in.Services, moves, guest(5))
	if refused := refusals(t, w, in); len(refused) > 0 || !slices.Contains(list(), "default/guest-00005") ||
		slices.Contains(list(), moves.Key()) {
		t.Errorf("one goes elsewhere, one comes: refused are %v, listed %v", refused, list())
	}

	// A Service that does not leave after all, because of a mistake, keeps its place in the list.
	mistaken := guest(8)
	mistaken.Spec.LoadBalancerIP = "20.99.99.99"
	in.Services = slices.DeleteFunc(in.Services, func(s loadbalancer.Service) bool { return s.Name == mistaken.Name })
	in.Services = append(in.Services, mistaken, guest(20))
	if refused := refusals(t, w, in); len(refused) != 2 || !slices.Contains(list(), mistaken.Key()) {
		t.Errorf("one cannot go, one comes: refused are %v, listed %v", refused, list())
	}
}

// TestServicesAtAnAddressOfOnesOwn checks that a foreign public IP can have any number of Services: it has no tag that
// lists them.
func TestServicesAtAnAddressOfOnesOwn(t *testing.T) {
	w := newSubscription(2)
	w.put(network+"publicIPAddresses/mine", parse(ownIP(network+"publicIPAddresses/mine", "20.1.0.2")))
	in := loadbalancer.Input{Config: config(), Complete: true}
	for i := range 20 {
		in.Services = append(in.Services, guest(i))
	}
	if refused := refusals(t, w, in); len(refused) > 0 {
		t.Errorf("refused are %v", refused)
	}
}

// TestTagsOfServicesAtOneAddress checks that a public IP has all tags that its Services ask for, whichever of them is in
// the commit. The first Service by name decides.
func TestTagsOfServicesAtOneAddress(t *testing.T) {
	for _, system := range [][]string{nil, {"sys"}} {
		w, in := sharing(t, 1)
		in.Config.SystemTags = system
		a, b := in.Services[1], in.Services[0] // guest, web
		a.Annotations = map[string]string{key.PublicIPTags.Name: "team=a,of-a=1"}
		b.Annotations = map[string]string{key.PublicIPTags.Name: "Team=b,of-b=2"}
		is := func(what string, want object) {
			t.Helper()
			got := w.tagsOfWeb()
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("system tags %v, %s: tags are %v, want %v", system, what, got, want)
					return
				}
			}
		}
		alone := func(one, other loadbalancer.Service) int {
			in := in
			in.Services, in.Others = []loadbalancer.Service{one}, append(in.Others[:0:0], other.Service)
			rounds, err := w.commit(in)
			if err != nil {
				t.Fatal(err)
			}
			return writes(rounds)
		}
		alone(a, b)
		alone(b, a)
		both := object{"team": "a", "of-a": "1", "of-b": "2"}
		is("one after the other", both)
		if n := alone(a, b) + alone(b, a); n > 0 {
			t.Errorf("system tags %v: %d writes when nothing has changed", system, n)
		}
		in.Services = []loadbalancer.Service{a, b}
		if rounds, err := w.commit(in); err != nil || writes(rounds) > 0 {
			t.Errorf("system tags %v, together: %v, %v", system, rounds, err)
		}
		is("together", both)

		a.Annotations = nil
		alone(b, a)
		is("one asks no more", object{"team": "b", "of-b": "2"})
		if _, there := w.tagsOfWeb()["of-a"]; there != (system == nil) {
			t.Errorf("system tags %v: tags are %v when one asks no more", system, w.tagsOfWeb())
		}
	}
}

// manyTags asks for n tags.
func manyTags(from, n int) map[string]string {
	var pairs []string
	for i := range n {
		pairs = append(pairs, fmt.Sprintf("t%d=x", from+i))
	}
	return map[string]string{key.PublicIPTags.Name: strings.Join(pairs, ",")}
}

// TestTagsOfOneCommitCount checks that the tags that Services of one commit ask for at one public IP
// count together. A Service with its tags there keeps them, whichever Service comes first, and also if
// it is refused for another reason.
func TestTagsOfOneCommitCount(t *testing.T) {
	for _, system := range [][]string{nil, {"sys"}} {
		t.Run(fmt.Sprint(system), func(t *testing.T) {
			w, in := sharing(t, 2)
			in.Config.SystemTags = system
			web, first, second := &in.Services[0], &in.Services[1], &in.Services[2]
			is := func(what string, refused map[string]string, tags int, want ...loadbalancer.Service) {
				t.Helper()
				if len(w.tagsOfWeb()) != tags {
					t.Errorf("%s: there are %d tags, want %d", what, len(w.tagsOfWeb()), tags)
				}
				for _, s := range want {
					if !strings.HasPrefix(refused[s.Key()], problem.Limit) {
						t.Errorf("%s: %s is not refused", what, s.Key())
					}
				}
				if len(refused) != len(want) {
					t.Errorf("%s: refused are %v", what, refused)
				}
			}
			web.Annotations, first.Annotations = manyTags(0, 30), manyTags(30, 19)
			is("one too many", refusals(t, w, in), 32, *first)
			first.Annotations = manyTags(30, 18)
			is("as many as there may be", refusals(t, w, in), 50)
			second.Annotations = manyTags(20, 20)
			is("the same ones", refusals(t, w, in), 50)
			second.Annotations = manyTags(20, 40)
			is("one more", refusals(t, w, in), 50, *second)
			second.Annotations = nil
			first.Annotations = manyTags(30, 19) // by name it is before web
			is("the first one asks for more", refusals(t, w, in), 50, *first)

			web.Spec.Ports = nil
			rounds, err := w.commit(in)
			if err != nil || len(w.tagsOfWeb()) != 50 {
				t.Errorf("a Service refused for another reason keeps its tags: %d, %v, %v", len(w.tagsOfWeb()), rounds[0].problems, err)
			}
			web.Gone = true
			if system != nil {
				is("one leaves", refusals(t, w, in), 21)
			}
		})
	}
}

// TestTagsOfOtherServicesCount checks that, with system tags, the tags of another Service at the address stay, and count.
func TestTagsOfOtherServicesCount(t *testing.T) {
	w, in := sharing(t, 1)
	in.Config.SystemTags = []string{"sys"}
	web, guest := in.Services[0], in.Services[1]
	web.Annotations, guest.Annotations = manyTags(0, 30), manyTags(30, 18)
	for _, pair := range [][2]loadbalancer.Service{{web, guest}, {guest, web}, {web, guest}} {
		in.Services, in.Others = pair[:1], append(in.Others[:0], pair[1].Service)
		if refused := refusals(t, w, in); len(refused) > 0 {
			t.Fatal(refused)
		}
	}
	guest.Annotations = manyTags(30, 19)
	in.Services, in.Others = []loadbalancer.Service{guest}, append(in.Others[:0], web.Service)
	if refused := refusals(t, w, in); len(refused) != 1 || len(w.tagsOfWeb()) != 50 {
		t.Errorf("refused are %v, tags %d", refused, len(w.tagsOfWeb()))
	}
}
