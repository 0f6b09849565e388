package service_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/key"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden files anew")

// repairPeriod of dry runs.
const repairPeriod = 30 * time.Minute

const idle = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"

func (w *serviceCluster) look() *explain.Inspector { return w.lookWith(config()) }

func (w *serviceCluster) lookWith(c service.Config) *explain.Inspector {
	w.t.Helper()
	look, err := explain.NewInspector(w.t.Context(), inspectorOf(c), w.Client.Fresh(), w.client)
	if err != nil {
		w.t.Fatal(err)
	}
	return look
}

func (w *serviceCluster) explain(name string) explain.Explanation {
	w.t.Helper()
	return w.explainWith(config(), name)
}

func (w *serviceCluster) explainWith(c service.Config, name string) explain.Explanation {
	w.t.Helper()
	e, err := w.lookWith(c).Explain(w.t.Context(), corev1.NamespaceDefault, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// TestExplanations compares what is printed in the life of a Service with testdata/explain.txtar. Its files are text,
// or JSON, YAML or SVG if their names end in that.
func TestExplanations(t *testing.T) {
	const file = "testdata/explain.txtar"
	var got txtar.Archive
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Seed: 1}, 2)
		tell := func(name string, e explain.Explanation) {
			got.Files = append(got.Files, txtar.File{Name: name, Data: []byte(printed(t, name, e))})
		}
		w.create(w.newService("web", 80))
		tell("new.txt", w.explain("web"))
		tell("new.yaml", w.explain("web"))
		stop := w.start(config())
		w.served("web")
		w.settle()
		tell("served.txt", w.explain("web"))
		tell("served.json", w.explain("web"))
		tell("served.svg", w.explain("web"))
		stop()
		w.change("web", func(s *corev1.Service) {
			s.Annotations = map[string]string{idle: "30"}
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, NodePort: 30053})
		})
		tell("changed.txt", w.explain("web"))
		tell("changed.yaml", w.explain("web"))
		tell("changed.svg", w.explain("web"))
		w.change("web", func(s *corev1.Service) { s.Annotations = map[string]string{idle: "soon"} })
		tell("refused.txt", w.explain("web"))
		w.create(w.newService("api", 443))
		all, err := w.look().ExplainAll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tell("all.txt", all)
		tell("all.svg", all)
		inner := w.newService("inner", 53)
		inner.Annotations = map[string]string{key.Internal.Name: "true"}
		inner.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
		w.create(inner)
		tell("inner.txt", w.explain("inner"))
		tell("inner.svg", w.explain("inner"))
		w.change("web", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
		tell("leaving.txt", w.explain("web"))
	})
	golden(t, file, &got)
}

// golden compares an archive with the stored file, or stores it with -update.
func golden(t *testing.T, file string, got *txtar.Archive) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(txtar.Format(got))); d != "" {
		t.Error("run with -update if this is as it should be (-want +got):\n" + d)
	}
}

// printed is an explanation in the format of the file name. It hides etags, because they differ from run to run.
func printed(t *testing.T, name string, e explain.Explanation) string {
	t.Helper()
	text, err := []byte(e.String()), error(nil)
	switch {
	case strings.HasSuffix(name, ".json"):
		text, err = json.MarshalIndent(e, "", "  ")
		text = append(text, '\n')
	case strings.HasSuffix(name, ".yaml"):
		text, err = yaml.Marshal(e)
	case strings.HasSuffix(name, ".svg"):
		text = []byte(e.Picture().Inline(nil))
	}
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`W/\\*"[^"\\]*\\*"`).ReplaceAllString(string(text), "ETAG")
}

// After each turn of each scenario, the explanation agrees with the controller that there is nothing to do. It never
// writes.
func TestExplanationsAgreeWithTheController(t *testing.T) {
	for i, scenario := range testkit.ServiceScenarios() {
		if testing.Short() && i%8 != 0 {
			continue // that there is nothing left to do is also what TestExamples demands of each
		}
		t.Run(scenario.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServiceCluster(t, core.Options{}, 2)
				c := config()
				if scenario.Config != nil {
					scenario.Config(&c.LoadBalancer)
				}
				w.start(c)
				env := w.env()
				serve := env.Serve
				env.Serve = func(ctx context.Context, s *corev1.Service) (*corev1.Service, error) {
					served, err := serve(ctx, s)
					if err != nil {
						return served, err
					}
					w.settle()
					writes := len(w.Writes())
					e := w.explainWith(c, s.Name)
					if e.Pending() || e.Services[0].State != explain.Settled {
						t.Errorf("after it was served:\n%s", e)
					}
					if got := w.Writes(); len(got) > writes {
						t.Errorf("explaining wrote %v", got[writes:])
					}
					return served, nil
				}
				scenario.Play(t, env, w.Azure)
			})
		})
	}
}

// What a user changed by hand is found, in Azure and in Kubernetes.
func TestExplanationOfDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		stop := w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		stop()
		lb := testkit.Must[network.LoadBalancer](w.Azure, testkit.LoadBalancer)
		lb.Properties.LoadBalancingRules[0].Properties.IdleTimeoutInMinutes = new(int32(9))
		lb.Properties.Probes = nil
		lb.Properties.LoadBalancingRules[0].Properties.Probe = nil
		w.Put(testkit.LoadBalancer, lb)
		ip := w.address("web")
		w.change("web", func(s *corev1.Service) { s.Status.LoadBalancer.Ingress[0].IP = "192.0.2.1" })
		states := map[string]explain.PartState{}
		e := w.explain("web")
		for _, p := range e.Services[0].Parts {
			states[p.Kind] = p.State
		}
		want := map[string]explain.PartState{
			"public IP": explain.UpToDate, "frontend": explain.UpToDate, "rule": explain.ToChange, "probe": explain.ToCreate,
			"pool": explain.UpToDate, "security rule": explain.UpToDate,
		}
		if d := cmp.Diff(want, states); d != "" {
			t.Errorf("parts (-want +got):\n%s\n%s", d, e)
		}
		if got := strings.Join(e.Services[0].Kubernetes, "\n"); got != "status.loadBalancer.ingress: 192.0.2.1 -> "+ip {
			t.Errorf("in Kubernetes: %s", got)
		}
	})
}

func TestExplanationsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.create(w.newService("inside", 80))
		w.change("inside", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP })
		w.create(w.newService("others", 80))
		w.change("others", func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("example.com/other") })
		for name, want := range map[string]string{
			"nowhere": "there is no Service default/nowhere",
			"inside":  "default/inside is a Service of type ClusterIP: only those of type LoadBalancer are served",
			"others":  `default/others is a Service of the load balancer class "example.com/other": served are ["" "kaz/azure"] (--load-balancer-class)`,
		} {
			if _, err := w.look().Explain(t.Context(), corev1.NamespaceDefault, name); err == nil || err.Error() != want {
				t.Errorf("%s: %v, want %s", name, err, want)
			}
		}
		if e, err := w.look().ExplainAll(t.Context()); err != nil || e.Pending() ||
			!strings.Contains(e.String(), "no Service of type LoadBalancer is served") {
			t.Errorf("all: %v\n%s", err, e)
		}
	})
}

// What the controller logs is what is explained before: each step with its reason, and what
// is wrong with a Service, once.
func TestTheControllerLogsWhatIsExplained(t *testing.T) {
	var log bytes.Buffer
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		stop := w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		stop()
		w.change("web", func(s *corev1.Service) { addPort(s, 443, corev1.ProtocolTCP) })
		w.create(notes{"azure-load-balancer-tcp-idle-timeout": "soon"}.at(w.newService("bad", 80)))
		e, err := w.look().ExplainAll(t.Context())
		if err != nil || len(e.Steps) != 2 {
			t.Fatalf("%v\n%s", err, e)
		}
		var want []string
		for _, s := range e.Steps {
			want = append(want, s.Text)
		}
		for _, s := range e.Services {
			for _, p := range s.Problems {
				want = append(want, p.Object+" "+p.Reason+" "+p.Message)
			}
		}
		log.Reset()
		stop = w.start(config())
		w.settle()
		<-time.After(time.Hour)
		stop()
		var got []string
		for line := range strings.Lines(log.String()) {
			var l struct{ Msg, Step, Object, Reason, Message string }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatal(err)
			}
			switch l.Msg {
			case "azure changed":
				got = append(got, l.Step)
			case "not as asked":
				got = append(got, l.Object+" "+l.Reason+" "+l.Message)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("what is logged (-explained +logged):\n%s", d)
		}
	})
}

// A dry run reports what would be done, reports again when that changes, and writes nothing.
func TestDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 2)
		w.create(w.newService("web", 80))
		w.create(w.newService("api", 443))
		w.client.ClearActions()
		reported := w.dryRun(config())
		if got := reported(); len(got) != 1 || len(got[0].Services) != 2 || len(got[0].Steps) != 7 {
			t.Fatalf("at the start: %v", got)
		}
		w.change("web", func(s *corev1.Service) { s.Labels = map[string]string{"for": "nothing"} })
		if got := reported(); len(got) != 1 {
			t.Errorf("reported again what did not change: %v", got[1:])
		}
		w.change("web", func(s *corev1.Service) { s.Annotations = map[string]string{idle: "soon"} })
		if got := reported(); len(got) != 2 || got[1].Services[0].State != explain.Refused {
			t.Errorf("after a mistake: %v", got)
		}
		<-time.After(repairPeriod) // the periodic comparison finds nothing new, either
		if got := reported(); len(got) != 2 {
			t.Errorf("reported again what did not change: %v", got[2:])
		}
		if got := w.Writes(); len(got) > 0 {
			t.Errorf("written to Azure: %v", got)
		}
		for _, a := range w.client.Actions() {
			if verb := a.GetVerb(); verb != "list" && verb != "watch" && verb != "get" {
				t.Errorf("%s of %s in Kubernetes", verb, a.GetResource().Resource)
			}
		}
		if got := w.events.list(""); len(got) > 0 {
			t.Errorf("events: %v", got)
		}
	})
}

// dryRun runs a dry run until the test ends. The returned function waits until the dry run has nothing
// more to report, and returns its report.
func (w *serviceCluster) dryRun(c service.Config) func() []explain.Explanation {
	w.t.Helper()
	c.RepairPeriod = repairPeriod
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	factory := informers.NewSharedInformerFactory(w.client, 0)
	controller, err := service.New(c, service.Deps{Azure: w.Client, Client: w.client, Informers: factory, Events: w.events})
	if err != nil {
		w.t.Fatal(err)
	}
	var reported []explain.Explanation
	var running sync.WaitGroup
	running.Go(func() { controller.DryRun(ctx, func(e explain.Explanation) { reported = append(reported, e) }) })
	factory.Start(ctx.Done())
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
		factory.Shutdown()
	})
	return func() []explain.Explanation {
		w.settle()
		synctest.Wait()
		return reported
	}
}

// records are the lines of a log.
type records struct {
	slog.Handler
	steps []string
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }

func (r *records) Handle(_ context.Context, line slog.Record) error {
	line.Attrs(func(a slog.Attr) bool {
		if line.Message == "azure would be changed" && a.Key == "step" {
			r.steps = append(r.steps, a.Value.String())
		}
		return true
	})
	return nil
}

// A dry run logs what is done for each Service. That includes what is done only when the public IPs of other Services
// have their addresses.
func TestDryRunLogsWhatWaitsForAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{Seed: 1}, 2)
		stop := w.start(config())
		w.create(w.newService("web", 80))
		w.served("web")
		w.settle()
		stop()
		w.change("web", func(s *corev1.Service) { s.Annotations = map[string]string{idle: "30"} })
		w.create(w.newService("api", 443))
		var log records
		before := slog.Default()
		slog.SetDefault(slog.New(&log))
		defer slog.SetDefault(before)
		reported := w.dryRun(config())()
		if len(reported) == 0 {
			t.Fatal("nothing is reported")
		}
		for _, want := range []string{"address of default/api", "frontends, rules and probes of default/api, default/web",
			"access to default/api"} {
			if !slices.ContainsFunc(log.steps, func(s string) bool { return strings.Contains(s, want) }) {
				t.Errorf("%q is not in the log:\n%s\n%s", want, strings.Join(log.steps, "\n"), reported[0])
			}
		}
	})
}

// A failed dry run is repeated when Azure answers, before everything is compared the next time.
func TestADryRunThatFailsIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newServiceCluster(t, core.Options{}, 1)
		w.create(w.newService("web", 80))
		if err := w.SetFaults([]core.Fault{{Method: "GET", Type: network.LoadBalancers, Fault: core.FaultError, Status: 403,
			Code: "AuthorizationFailed"}}); err != nil {
			t.Fatal(err)
		}
		reported := w.dryRun(config())
		if got := reported(); len(got) > 0 {
			t.Errorf("reported %v, and Azure may not be read", got)
		}
		<-time.After(2 * time.Minute) // the comparison that follows a start is over
		if err := w.SetFaults(nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Minute)
		if got := reported(); len(got) != 1 || len(got[0].Services) != 1 {
			t.Errorf("reported %v, want what becomes of the Service", got)
		}
	})
}

// inspectorOf is the configuration of an inspector that explains what a controller would do.
func inspectorOf(c service.Config) explain.Config {
	return explain.Config{LoadBalancer: c.LoadBalancer, Classes: c.Classes}
}
