package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/web"
	"kaz/internal/picture"
)

// explainer explains a Service, and counts how many explanations are made at once.
type explainer struct {
	asked   web.Subject
	err     error
	entered chan struct{} // nil to answer at once
	leave   chan struct{}
	now     atomic.Int32
	most    atomic.Int32
}

func (e *explainer) Objects(context.Context) ([]web.Subject, error) {
	return []web.Subject{{Kind: "service", Name: "default/web"}, {Kind: "volume", Name: "default/data"}}, e.err
}

func (e *explainer) Explain(_ context.Context, of web.Subject) (picture.Picture, error) {
	e.most.Store(max(e.most.Load(), e.now.Add(1)))
	defer e.now.Add(-1)
	if e.entered != nil {
		e.entered <- struct{}{}
		<-e.leave
	}
	e.asked = of
	p := picture.New("Service default/web", "Kubernetes", "Azure")
	p.Add(0, picture.Box{Key: "a", Kind: "Service", Name: "<script>alert(1)</script>", To: []string{"b"}})
	p.Add(1, picture.Box{Key: "b", Kind: "load balancer", Name: "lb", Resource: group + "/providers/Microsoft.Network/loadBalancers/lb"})
	p.Text = "Service default/web: <b>nothing to do</b>"
	return *p, e.err
}

func withExplainer(e *explainer) func(*web.Options, *core.Options) {
	return func(o *web.Options, _ *core.Options) { o.Why = e }
}

func why(kind, name, limits string) string {
	return "why?" + url.Values{"kind": {kind}, "name": {name}, "limits": {limits}}.Encode()
}

func TestWhy(t *testing.T) {
	e := &explainer{}
	f := start(t, withExplainer(e))
	f.fill()
	network := group + "/providers/Microsoft.Network/"
	f.put(network+"dnszones/example.com", `{"location":"global"}`)
	f.put(network+"dnszones/example.com/A/app", `{"properties":{"TTL":60,"ARecords":[{"ipv4Address":"1.1.1.1"}]}}`)

	list := f.page("why")
	var links []string
	for _, l := range all(list, ".subjects") {
		for _, a := range all(l, "a") {
			links = append(links, textOf(a))
			if !strings.HasPrefix(attribute(a, "href"), web.Path+"why?kind=") {
				t.Errorf("the link of %s is %s", textOf(a), attribute(a, "href"))
			}
		}
	}
	if got := strings.Join(links, " "); got != "default/web default/data app.example.com" {
		t.Errorf("objects %s", got)
	}

	page := f.page(why("service", "default/web", ""))
	if len(all(page, "svg")) != 1 || len(all(page, ".line")) != 1 {
		t.Fatalf("no picture with a line in %s", textOf(page))
	}
	for _, script := range all(page, "script") {
		if attribute(script, "src") == "" {
			t.Error("a name became a script")
		}
	}
	if len(all(page, "style")) > 0 {
		t.Error("the picture has a style of its own, which the policy of the page forbids")
	}
	if got := attribute(all(all(page, "svg")[0], "a")[0], "href"); !strings.HasPrefix(got, web.Path+"resource?id=") {
		t.Errorf("the load balancer leads to %s", got)
	}
	if pre := all(page, "pre"); len(pre) != 1 || textOf(pre[0]) != "Service default/web: <b>nothing to do</b>" {
		t.Errorf("the words are %v", pre)
	}
	if e.asked.Kind != "service" || e.asked.Name != "default/web" || len(e.asked.Groups) > 0 {
		t.Errorf("asked %+v", e.asked)
	}
	f.page(why("name", "app.example.com", ""))
	if len(e.asked.Groups) != 1 || e.asked.Groups[0] != group {
		t.Errorf("groups with zones: %v, want %s", e.asked.Groups, group)
	}
	if status, css := f.get("assets/picture.css"); status != http.StatusOK || css != picture.Style {
		t.Errorf("the style of pictures: %d", status)
	}
}

func TestWhyRefuses(t *testing.T) {
	e := &explainer{}
	f := start(t, withExplainer(e))
	for path, want := range map[string]string{
		why("pod", "default/web", ""):                "There is no kind pod to explain.",
		why("service", "--kubeconfig=/etc", ""):      "is not a name",
		why("service", "a b", ""):                    "is not a name",
		why("service", strings.Repeat("a", 600), ""): "is not a name",
		why("nodegroup", "pool", "1:2:x"):            "The limits 1:2:x are not MIN:MAX",
	} {
		if status, text := f.get(path); status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d, want %q in %s", path, status, want, textOf(parsed(t, text)))
		}
	}
	if e.asked.Kind != "" {
		t.Errorf("it was asked for %+v", e.asked)
	}
	e.err = errors.New("there is no Service default/<i>web</i>")
	if problems := all(f.page(why("service", "default/web", "")), ".problem"); len(problems) != 1 || textOf(problems[0]) != e.err.Error() {
		t.Errorf("problems %v, want %v", problems, e.err)
	}
	if got := textOf(start(t, nil).page("why")); !strings.Contains(got, "started without a cluster") {
		t.Errorf("an Azure without a cluster says %s", got)
	}
}

// TestWhyOneAtATime asks for two explanations: the second begins when the first has ended.
func TestWhyOneAtATime(t *testing.T) {
	e := &explainer{entered: make(chan struct{}), leave: make(chan struct{})}
	f := start(t, withExplainer(e))
	answers := make(chan int, 2)
	for range 2 {
		go func() {
			status, _ := f.get(why("service", "default/web", ""))
			answers <- status
		}()
	}
	for range 2 {
		<-e.entered
		e.leave <- struct{}{}
	}
	for range 2 {
		if status := <-answers; status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	}
	if n := e.most.Load(); n != 1 {
		t.Errorf("%d explanations at once, want 1", n)
	}
}
