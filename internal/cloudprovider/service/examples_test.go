package service_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

const (
	examples     = "../../../docs/example-manifests/service"
	examplesPage = "../../../docs/resources/service/examples.md"
)

// Each example of the docs is served as its comment says, and nothing is left to do then. When it goes, nothing of it
// is left. The docs' page is made of the examples.
func TestExamples(t *testing.T) {
	all := testkit.Examples(t, examples)
	for i, example := range all {
		t.Run(example.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := playExample(t, example)
				if *update {
					all[i].Then = got
					if err := os.WriteFile(filepath.Join(examples, example.Name+".yaml"), []byte(all[i].String()), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				if d := cmp.Diff(example.Then, got); d != "" {
					t.Errorf("what is in Azure (-the example's comment +it is):\n%s", d)
				}
			})
		})
	}
	page := renderExamples(t, all)
	if *update {
		if err := os.WriteFile(examplesPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(examplesPage)
	if err != nil || string(have) != page {
		t.Errorf("%s is not made of the manifests as they are (%v); run with -update", examplesPage, err)
	}
}

func playExample(t *testing.T, example testkit.Example) (then []string) {
	w := newServiceCluster(t, core.Options{Seed: 1}, 2)
	if err := testkit.Prepare(t.Context(), w.Client, testkit.Group, testkit.VNet, example.Given); err != nil {
		t.Fatal(err)
	}
	w.start(config())
	before := w.Snapshot()
	for _, s := range example.Services {
		w.create(w.completed(s))
	}
	for _, s := range example.Services {
		w.until(s.Name+" has its addresses", func() bool {
			s := w.get(s.Name)
			return len(s.Status.LoadBalancer.Ingress) == len(s.Spec.IPFamilies)
		})
	}
	w.settle()
	e, err := w.look().ExplainAll(t.Context())
	if err != nil || e.Pending() || len(e.Refused()) > 0 {
		t.Errorf("served, and yet: %v\n%s", err, e)
	}
	for _, s := range example.Services {
		for _, fact := range w.env().Facts(t, w.get(s.Name)) {
			if len(example.Services) > 1 {
				fact = s.Name + ": " + fact
			}
			then = append(then, fact)
		}
	}
	for _, s := range example.Services {
		w.remove(s.Name) // together: none waits for another
	}
	for _, s := range example.Services {
		w.until(s.Name+" is gone", func() bool { return w.gone(s.Name) })
	}
	w.settle()
	if d := cmp.Diff(opened(before), opened(w.Snapshot())); d != "" {
		t.Errorf("it is gone, and Azure is not as before (-before +after):\n%s", d)
	}
	return then
}

// completed is a Service of a manifest as an API server stores it.
func (w *serviceCluster) completed(s *corev1.Service) *corev1.Service {
	w.uids++
	s = s.DeepCopy()
	s.UID = types.UID(fmt.Sprintf("3d2c1b0a-1111-2222-3333-%012x", w.uids<<4))
	for key, value := range s.Annotations {
		s.Annotations[key] = strings.ReplaceAll(value, "/resourceGroups/kaz/", "/resourceGroups/"+testkit.ResourceGroup+"/")
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		p.NodePort = int32(30000 + 100*w.uids + i)
	}
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		s.Spec.HealthCheckNodePort = 32000
	}
	return s
}

func renderExamples(t *testing.T, all []testkit.Example) string {
	group := azure.GroupID(testkit.Subscription, "kaz") // names of kaz local up
	vnet := group.Resource(network.VirtualNetworks, "kaz-vnet")
	var b strings.Builder
	b.WriteString(`<!-- Generated from docs/example-manifests/service by "go test ./internal/cloudprovider/service -run TestExamples -update". -->
# Services of type LoadBalancer by example

A test applies each of these manifests and compares the result in Azure with the list below it. The files are in
[docs/example-manifests/service](../../example-manifests/service). [annotations.md](annotations.md) explains each annotation.

Unless the list says otherwise, a rule has an idle timeout of 4 minutes and sends a TCP reset to both ends when it closes an idle
connection. If an example needs resources in Azure, they are listed above its manifest, with the commands that create them in the
local Azure of a local cluster. A test runs these commands.

`)
	for _, e := range all {
		fmt.Fprintf(&b, "* [%s](#%s)\n", e.Title, anchor(e.Title))
	}
	for _, e := range all {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", e.Title, e.Text)
		if given := slices.DeleteFunc(slices.Clone(e.Given), func(g string) bool { return g == "dual stack" }); len(given) > 0 {
			fmt.Fprintf(&b, "Create before: %s. With `kaz local up`:\n\n```sh\n%s```\n\n", strings.Join(given, ", "),
				e.Commands(t, group, vnet))
		}
		if e.DualStack() {
			b.WriteString("Locally: `kaz local up --ip-families IPv4,IPv6`, with a new directory.\n\n")
		}
		fmt.Fprintf(&b, "```yaml\n# %s.yaml\n%s```\n\nIn Azure:\n\n", e.Name, e.Manifest)
		for _, line := range e.Then {
			fmt.Fprintf(&b, "* %s\n", line)
		}
	}
	return b.String()
}

// anchor is how a heading is linked to.
func anchor(title string) string {
	keep := func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return -1
	}
	return strings.Map(keep, strings.ToLower(title))
}

// The map of scenarios names the manifests that are there, and at least twenty of its
// rows are applied to a cluster.
func TestExamplesAreOnTheMap(t *testing.T) {
	text, err := os.ReadFile("../../../docs/scenarios/load-balancer.md")
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, e := range testkit.Examples(t, examples) {
		there[e.Name] = true
	}
	rows, onMap := 0, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if _, err := strconv.Atoi(strings.TrimSpace(cells[min(1, len(cells)-1)])); err != nil || len(cells) < 7 {
			continue
		}
		for i, name := range strings.Split(cells[5], "`") {
			if i%2 == 0 {
				continue
			}
			if !there[name] {
				t.Errorf("the map names the manifest %q, which is not there: %s", name, line)
			}
			onMap[name] = true
		}
		if strings.TrimSpace(cells[5]) != "" {
			rows++
		}
	}
	if rows < 20 {
		t.Errorf("%d rows are applied to a cluster, want 20 at least", rows)
	}
	for name := range there {
		if !onMap[name] && !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("the map does not name the manifest %s", name)
		}
	}
}
