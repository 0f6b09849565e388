package service_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/azure"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/key"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// noGroup asks for a public IP in a group with an invalid name.
var noGroup = annotated("load-balancer-resource-group", "no/group")

// TestANameThatIsNoneCanBePutRight checks that a Service with an invalid name of a resource group gets
// a problem. After the correction nothing of it is left, neither in the Service nor in the controller.
func TestANameThatIsNoneCanBePutRight(t *testing.T) {
	for name, was := range map[string]bool{"new": false, "served": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := mixed(t, core.Options{Latency: 1})
				before := w.everything()
				w.start(config())
				s := w.newService("web", 80)
				if was {
					w.create(s)
					w.served("web")
					w.settle()
					w.change("web", noGroup)
				} else {
					noGroup(s)
					w.create(s)
				}
				w.settle()
				w.reportedOnce("web", prefix+"load-balancer-resource-group", `"no/group"`, "allowed is the name of a resource group")
				w.remembers("web", 0)
				address := w.address("web")
				if was == (address == "") {
					t.Errorf("the address is %q", address)
				}
				w.change("web", elsewhere)
				w.until("it has what it asks for", func() bool { return w.address("web") != address && w.address("web") != "" })
				w.settle()
				w.remembers("web", 0)
				w.change("web", noGroup)
				w.settle()
				w.remove("web")
				w.allGone([]string{"web"})
				w.restored(before, w.everything)
			})
		})
	}
}

// What a user wrote in place of a note delays no Service, and goes when the Service is served.
func TestANoteThatIsNoNameIsTakenOff(t *testing.T) {
	note := key.Note{Group: "no/group"}.Condition()
	another := note
	another.Type = "kaz/public-ips-in-abc"
	for _, by := range []metav1.Condition{note, another} {
		t.Run(by.Type, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := mixed(t, core.Options{Latency: 1})
				before := w.everything()
				bad := w.newService("bad", 80)
				bad.Status.Conditions = []metav1.Condition{by}
				w.create(bad)
				w.create(w.newService("good", 81))
				for _, s := range w.explainAll().Services {
					reported := strings.Contains(strings.Join(s.Kubernetes, "\n"), "status.conditions: - "+by.Type+": no/group")
					if s.State != explain.Pending || reported != (s.Service == "default/bad") || len(s.Problems) > 0 {
						t.Errorf("explained: %+v", s)
					}
				}
				w.start(config())
				w.allServed([]string{"bad", "good"})
				w.settle()
				w.remembers("bad", 0)
				w.change("bad", func(s *corev1.Service) { s.Status.Conditions = []metav1.Condition{by} })
				w.remove("bad")
				w.remove("good")
				w.allGone([]string{"bad", "good"})
				w.restored(before, w.everything)
			})
		})
	}
}

// A note of a private link service that is still to be made stays, so no explanation says that it goes.
func TestExplainedNoteOfAPrivateLinkStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{})
		w.put(azure.GroupID(testkit.Subscription, "far"), `{"location":"`+testkit.Location+`"}`)
		web := w.newService("web", 80)
		annotated("load-balancer-internal", "true", "pls-create", "true", "pls-resource-group", "far")(web)
		web.Status.Conditions = []metav1.Condition{key.Note{Of: key.PrivateLinks, Group: "far"}.Condition()}
		w.create(web)
		e := w.explain("web")
		if len(e.Steps) == 0 || slices.ContainsFunc(e.Services[0].Kubernetes, func(s string) bool { return strings.Contains(s, "conditions") }) {
			t.Errorf("explained: %v", e)
		}
	})
}

// warnedOnce checks that a Service was warned once of something, in these words.
func (w *serviceCluster) warnedOnce(name, reason string, words ...string) {
	w.t.Helper()
	var reported []string
	for _, e := range w.events.list(name) {
		if strings.HasPrefix(e, reason+": ") {
			reported = append(reported, e)
		}
	}
	if len(reported) != 1 {
		w.t.Errorf("%s was warned %d times: %q", name, len(reported), reported)
		return
	}
	for _, want := range words {
		if !strings.Contains(reported[0], want) {
			w.t.Errorf("%s was warned %q, and not of %q", name, reported[0], want)
		}
	}
}

// A Service with an invalid name in an annotation is explained, and so are all others. A dry run reports the same.
func TestANameThatIsNoneIsExplained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := mixed(t, core.Options{Latency: 1})
		for name, ask := range map[string]func(*corev1.Service){
			"group":  noGroup,
			"id":     annotated("load-balancer-resource-group", string(far)),
			"subnet": annotated("load-balancer-internal", "true", "load-balancer-internal-subnet", "x/nodes"),
			"link":   annotated("load-balancer-internal", "true", "pls-create", "true", "pls-resource-group", "no/group"),
		} {
			s := w.newService(name, 80)
			ask(s)
			w.create(s)
		}
		w.create(w.newService("good", 81))
		check := func(e explain.Explanation) {
			t.Helper()
			if len(e.Services) != 5 {
				t.Fatalf("explained: %+v", e.Services)
			}
			for _, s := range e.Services {
				want := explain.Refused
				if s.Service == "default/good" {
					want = explain.Pending
				}
				if s.State != want || (want == explain.Refused) != (len(s.Problems) == 1) {
					t.Errorf("explained: %+v", s)
				}
			}
		}
		check(w.explainAll())
		reported := w.dryRun(config())()
		if len(reported) != 1 {
			t.Fatalf("dry run: %+v", reported)
		}
		check(reported[0])
		if e, err := w.look().Explain(t.Context(), "default", "id"); err != nil || len(e.Services) != 1 ||
			e.Services[0].State != explain.Refused ||
			!strings.Contains(e.Services[0].Problems[0].Message, "it is an id; want a name") {
			t.Errorf("explained: %+v, %v", e, err)
		}
	})
}
