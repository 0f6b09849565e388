package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/cluster"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/emit"
	"kaz/internal/cluster/failure"
	"kaz/internal/cluster/record"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit/clustertest"
)

// lab is a local Azure and a deployer for it.
type lab struct {
	*Deployer
	azure  *clustertest.Azure
	client *arm.Client
	t      *testing.T
	said   []string
	saved  []byte
}

func newLab(t *testing.T, o core.Options) *lab {
	t.Helper()
	l := &lab{t: t, azure: clustertest.Start(t, o)}
	l.connect(l.azure.Transport())
	return l
}

func (l *lab) connect(way http.RoundTripper) {
	l.t.Helper()
	l.client = clustertest.Client(l.t, way)
	l.Deployer = &Deployer{Store: record.Store{Azure: l.client}, Say: func(line string) { l.said = append(l.said, line) }}
}

// requests are the requests since the last call, "PUT kaz-prod".
func (l *lab) requests() (writes, reads []string) {
	for _, r := range l.azure.Requests() {
		if r.Writes() {
			writes = append(writes, r.Method+" "+r.Name())
		} else if r.Method == http.MethodGet {
			reads = append(reads, r.Method+" "+r.Name())
		}
	}
	return writes, reads
}

func (l *lab) save(kubeconfig []byte) error {
	l.saved = kubeconfig
	return nil
}

func example(t *testing.T, change func(*definition.Definition), files ...string) cluster.Plan {
	t.Helper()
	return clustertest.Plan(t, change, files...)
}

func (l *lab) deploy(p cluster.Plan) Result {
	l.t.Helper()
	r, err := l.Deploy(l.t.Context(), p, l.save)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// TestDeploy deploys the layers of three teams, and again: the second time nothing is written.
func TestDeploy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, core.Options{Latency: 1})
		p := example(t, nil, "ha.yaml", "team-a.yaml", "team-b.yaml")
		first := l.deploy(p)
		writes, _ := l.requests()
		want := []string{"PUT prod", "PUT kaz-prod", "PUT kaz-prod", "PUT definition", "PUT definition"}
		if !slices.Equal(writes, want) {
			t.Errorf("wrote %v, want %v: the group, the template spec, the deployment, and the definition before and after it", writes, want)
		}
		if len(first.Units) != len(p.Graph.Units) || !slices.ContainsFunc(l.said, func(s string) bool { return strings.Contains(s, "cp-2") }) {
			t.Errorf("deployed %v, said %q", first.Units, l.said)
		}
		counted := fmt.Sprintf(" succeeded (1 of %d, after ", len(p.Graph.Units))
		if !slices.ContainsFunc(l.said, func(s string) bool { return strings.Contains(s, counted) }) {
			t.Errorf("said %q, want %q", l.said, counted)
		}
		config, err := clientcmd.Load(l.saved)
		if err != nil || config.Clusters["prod"].Server != "https://"+p.Names.PublicHost()+":6443" {
			t.Errorf("kubeconfig: %v %+v", err, config)
		}
		for _, id := range []string{"Microsoft.Compute/virtualMachines/prod-cp-2", "Microsoft.Compute/virtualMachineScaleSets/prod-general",
			"Microsoft.Compute/virtualMachines/prod-db-1", "Microsoft.Network/privateEndpoints/prod-db"} {
			if _, err := l.client.Get(t.Context(), p.Names.Group()+azure.ID("/providers/"+id)); err != nil {
				t.Error(err)
			}
		}
		l.requests()
		again := l.deploy(p)
		writes, reads := l.requests()
		if !again.Unchanged || len(writes) > 0 || len(reads) > 20 {
			t.Errorf("the second time: %+v, wrote %v, %d reads", again, writes, len(reads))
		}
	})
}

// TestDeployedSecrets checks that secrets come from parameters, and that a later deployment does not write them.
func TestDeployedSecrets(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	l.deploy(p)
	main := record.DeploymentID(p.Names.Group(), p.Names.Deployment())
	doc, err := l.client.Get(t.Context(), main)
	if err != nil || bytes.Contains(doc, []byte("PRIVATE KEY")) {
		t.Errorf("the deployment shows a secret, or %v", err)
	}
	secret := p.Names.Group() + azure.ID("/providers/Microsoft.KeyVault/vaults/"+p.Names.Vault()+"/secrets/dev-bootstrap-token")
	before, err := l.client.Get(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	l.saved = nil
	l.deploy(example(t, func(d *definition.Definition) { d.Cluster.Spec.Azure.Tags = map[string]string{"a": "b"} }, "dev.yaml"))
	after, err := l.client.Get(t.Context(), secret)
	if err != nil || !bytes.Equal(before, after) || l.saved != nil {
		t.Errorf("the second deployment wrote a secret or a kubeconfig: %v\n%s\n%s", err, before, after)
	}
}

// TestSharedResources checks that a later deployment keeps what other programs wrote into resources, and that a pool grows.
func TestSharedResources(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	l.deploy(p)
	rule := p.Names.Group() + "/providers/Microsoft.Network/networkSecurityGroups/dev-node-nsg/securityRules/service"
	_, err := l.client.Put(t.Context(), azure.Write{ID: rule, Body: azure.Document(`{"properties":{"priority":500,"direction":"Inbound",
		"access":"Allow","protocol":"Tcp","sourcePortRange":"*","destinationPortRange":"80","sourceAddressPrefix":"Internet",
		"destinationAddressPrefix":"*"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	l.requests()
	r := l.deploy(example(t, func(d *definition.Definition) {
		d.Cluster.Spec.Azure.Tags = map[string]string{"a": "b"} // changes every unit
		d.Pools[0].Spec.Replicas = 3
	}, "dev.yaml"))
	if _, err := l.client.Get(t.Context(), rule); err != nil || r.Unchanged {
		t.Errorf("the rule of another program is gone: %v", err)
	}
	writes, _ := l.requests()
	writes = slices.DeleteFunc(writes, func(w string) bool { return w == "PATCH default" }) // tags
	if want := []string{"PUT kaz-dev", "PUT definition", "PUT definition", "PATCH dev-general"}; !slices.Equal(writes, want) {
		t.Errorf("wrote %v, want %v", writes, want)
	}
	machines, err := l.client.List(t.Context(), azure.Query{
		Scope: p.Names.Group() + "/providers/Microsoft.Compute/virtualMachineScaleSets/dev-general",
		Type:  "Microsoft.Compute/virtualMachineScaleSets/virtualMachines"})
	if err != nil || len(machines) != 3 {
		t.Errorf("%d machines, %v", len(machines), err)
	}
}

// TestMachinesStay checks that changed boot files do not write machines that exist, because Azure refuses that. Every version
// of kaz may change the boot files. A missing machine is made again.
func TestMachinesStay(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	l.deploy(p)
	set := p.Names.Group() + "/providers/Microsoft.Compute/virtualMachines/dev-cp-0"
	before, err := l.client.Get(t.Context(), set)
	if err != nil {
		t.Fatal(err)
	}
	changed := example(t, func(d *definition.Definition) { d.Cluster.Spec.ControlPlane.EtcdBackups++ }, "dev.yaml")
	l.deploy(changed)
	if after, err := l.client.Get(t.Context(), set); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the machine was written: %v", err)
	}
	if r := l.deploy(changed); !r.Unchanged {
		t.Errorf("the change never ends: %v", r.Units)
	}
	if err := l.client.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	l.deploy(changed)
	if _, err := l.client.Get(t.Context(), set); err != nil {
		t.Error(err)
	}
}

// TestResume checks scenario 23: a deployment that failed at some resource goes on there.
func TestResume(t *testing.T) {
	for fullType, bad := range map[string]map[string]any{
		"Microsoft.KeyVault/vaults":                 {"properties": map[string]any{"sku": map[string]any{"name": "golden"}}},
		"Microsoft.Network/virtualNetworks":         {"properties": map[string]any{"addressSpace": map[string]any{"addressPrefixes": []any{"none"}}}},
		"Microsoft.Network/loadBalancers":           {"sku": map[string]any{"name": "Golden"}},
		"Microsoft.Compute/virtualMachines":         {"properties": map[string]any{"hardwareProfile": map[string]any{"vmSize": "Standard_None"}}},
		"Microsoft.Compute/virtualMachineScaleSets": {"sku": map[string]any{"name": "Standard_None"}},
		"Microsoft.Storage/storageAccounts":         {"sku": map[string]any{"name": "Golden_LRS"}},
	} {
		t.Run(fullType, func(t *testing.T) {
			l := newLab(t, core.Options{})
			broken := example(t, func(d *definition.Definition) {
				d.Patches = append(d.Patches, definition.TemplatePatch{
					Spec: definition.PatchSpec{Target: definition.Target{Type: fullType}, Merge: bad},
				})
			}, "dev.yaml")
			_, err := l.Deploy(t.Context(), broken, l.save)
			failed, ok := errors.AsType[*failure.Error](err)
			if !ok || len(failed.Failures) == 0 || !strings.EqualFold(failed.Failures[0].ID.Type(), fullType) || failed.Failures[0].Code == "" {
				t.Fatalf("got %v", err)
			}
			kubeconfig := l.saved
			p := example(t, nil, "dev.yaml")
			r := l.deploy(p)
			vaultFailed := fullType == "Microsoft.KeyVault/vaults"
			if len(r.Units) == len(p.Graph.Units) {
				t.Errorf("deployed everything again: %v", r.Units)
			}
			if bytes.Equal(kubeconfig, l.saved) == vaultFailed {
				t.Error("the kubeconfig does not belong to the secrets in the vault")
			}
			if r := l.deploy(p); !r.Unchanged {
				t.Errorf("not complete: %v", r.Units)
			}
		})
	}
}

// TestElsewhere checks that another machine needs no file: the deployment records the definition.
func TestElsewhere(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "ha.yaml", "team-a.yaml")
	l.deploy(p)
	a := p.Definition.Cluster.Spec.Azure
	recorded, found, err := l.Recorded(t.Context(), record.Place{Subscription: a.SubscriptionID, Group: a.ResourceGroup.Name, Name: "prod"}.Names())
	if err != nil || !found {
		t.Fatal(found, err)
	}
	if r := l.deploy(recorded); !r.Unchanged {
		t.Errorf("the recorded definition differs: %v", r.Units)
	}
	status, err := l.Status(t.Context(), p.Names)
	if err != nil || status.State != "Succeeded" || status.Version != "1.36.3" || len(status.Units) != len(p.Graph.Units) || status.Resources == 0 {
		t.Errorf("%v %+v", err, status)
	}
}

// TestRemovedPool checks that a pool that is no longer in the definition stays, and that the output says so.
func TestRemovedPool(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	l.deploy(p)
	l.said = nil
	l.deploy(example(t, func(d *definition.Definition) { d.Pools[0].Metadata.Name = "other" }, "dev.yaml"))
	if !slices.ContainsFunc(l.said, func(line string) bool { return strings.HasPrefix(line, "unit pool-general is in Azure and not in") }) {
		t.Errorf("said %q", l.said)
	}
	set := p.Names.Group() + "/providers/Microsoft.Compute/virtualMachineScaleSets/dev-general"
	if _, err := l.client.Get(t.Context(), set); err != nil {
		t.Error(err)
	}
}

func TestRefusedChanges(t *testing.T) {
	l := newLab(t, core.Options{})
	l.deploy(example(t, nil, "dev.yaml"))
	l.requests()
	_, err := l.Deploy(t.Context(), example(t, func(d *definition.Definition) {
		d.Cluster.Spec.Kubernetes.ServiceCIDR = "10.1.0.0/16"
		d.Pools[0].Spec.OSDisk.Ephemeral = true
	}, "dev.yaml"), l.save)
	want := `the definition changes what a deployment cannot change: make a new pool or cluster, or take the change back:
Cluster dev: spec.kubernetes.serviceCIDR: "10.0.0.0/16" -> "10.1.0.0/16" (fixed)
NodePool general: spec.osDisk.ephemeral: false -> true (fixed)`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	if writes, _ := l.requests(); len(writes) > 0 {
		t.Errorf("wrote %v", writes)
	}
}

// TestPolicy checks scenario 22: Azure refuses a template with a resource that a policy denies, the error names both, and nothing is made.
func TestPolicy(t *testing.T) {
	p := example(t, nil, "dev.yaml")
	subscription := azure.SubscriptionID(p.Definition.Cluster.Spec.Azure.SubscriptionID)
	policy := subscription.Resource("Microsoft.Authorization/policyDefinitions", "closed")
	rule := `{"properties":{"policyRule":{"if":{"field":"type","equals":"Microsoft.Network/publicIPAddresses"},"then":{"effect":"deny"}}}}`
	for _, scope := range []azure.ID{p.Names.Group(), subscription} {
		l := newLab(t, core.Options{})
		assignment := scope.Resource("Microsoft.Authorization/policyAssignments", "no-way-in")
		if err := errors.Join(l.write(p.Names.Group(), `{"location":"westeurope"}`), l.write(policy, rule),
			l.write(assignment, `{"properties":{"policyDefinitionId":"`+string(policy)+`"}}`)); err != nil {
			t.Fatal(err)
		}
		_, err := l.Deploy(t.Context(), p, l.save)
		for _, want := range []string{"'dev-api-pip' was disallowed by policy", "no-way-in", "remedy: a policy of the subscription"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", scope, err, want)
			}
		}
		if state, err := l.Read(t.Context(), p.Names); err != nil || len(state.Resources) > 0 {
			t.Errorf("%s: made %v: %v", scope, state.Resources, err)
		}
	}
}

// write writes a document of a test.
func (l *lab) write(id azure.ID, body string) error {
	_, err := azure.Do(l.t.Context(), l.client, azure.Request{Verb: azure.Put, ID: id, Body: azure.Document(body), Unseen: true})
	return err
}

// TestDestroy checks scenario 48: a resource group that kaz made is removed. From another group only the resources of the
// cluster are removed.
func TestDestroy(t *testing.T) {
	for _, lifecycle := range []string{"Owned", "Existing"} {
		t.Run(lifecycle, func(t *testing.T) {
			l := newLab(t, core.Options{})
			p := example(t, func(d *definition.Definition) { d.Cluster.Spec.Azure.ResourceGroup.Lifecycle = lifecycle }, "ha.yaml", "team-b.yaml")
			foreign := p.Names.Group() + "/providers/Microsoft.Network/routeTables/foreign"
			if lifecycle == "Existing" {
				for _, id := range []azure.ID{p.Names.Group(), foreign} {
					if _, err := l.client.Put(t.Context(), azure.Write{ID: id, Body: azure.Document(`{"location":"westeurope"}`)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			l.deploy(p)
			r, err := l.Removal(t.Context(), p)
			if err != nil || r.Group != (lifecycle == "Owned") {
				t.Fatal(r, err)
			}
			if err := l.Destroy(t.Context(), p, r); err != nil {
				t.Fatal(err)
			}
			left, err := l.client.List(t.Context(), azure.Query{Scope: p.Names.Group(), Type: "Microsoft.Resources/resources"})
			again := example(t, func(d *definition.Definition) { d.Cluster.Spec.Azure.ResourceGroup.Lifecycle = lifecycle }, "ha.yaml")
			if _, err := l.Deploy(t.Context(), again, l.save); err == nil || !strings.Contains(err.Error(), p.Names.Vault()) {
				t.Errorf("a cluster with the name of a deleted vault: %v", err)
			}
			if err := errors.Join(l.Purge(t.Context(), p), l.Purge(t.Context(), p)); err != nil {
				t.Errorf("purge: %v", err)
			}
			switch {
			case lifecycle == "Owned" && !azure.IsNotFound(err):
				t.Errorf("the group is there: %v", err)
			case lifecycle == "Existing" && (err != nil || len(left) != 1 || !left[0].ID().Equal(foreign)):
				t.Errorf("%v: left %s", err, left)
			}
		})
	}
}

// TestWhatIfOfTheWholeTemplate checks that Azure predicts no change for the template of a cluster that is deployed, with all its units.
func TestWhatIfOfTheWholeTemplate(t *testing.T) {
	for _, files := range [][]string{{"dev.yaml"}, {"ha.yaml", "team-a.yaml", "team-b.yaml"}} {
		l := newLab(t, core.Options{})
		p := example(t, nil, files...)
		l.deploy(p)
		body, err := work{plan: p, template: p.Template(emit.Options{})}.body(nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := azure.Do(t.Context(), l.Azure, azure.Request{Verb: azure.Post, Action: "whatIf", Body: body,
			ID: record.DeploymentID(p.Names.Group(), p.Names.Deployment())})
		var result struct{ Properties struct{ Changes []Change } }
		if err != nil || json.Unmarshal(answer, &result) != nil || len(result.Properties.Changes) < 20 {
			t.Fatalf("%v: %v %.400s", files, err, answer)
		}
		for _, c := range result.Properties.Changes {
			if c.Type != "NoChange" && c.Type != "Ignore" {
				t.Errorf("%v: %s %s", files, c.Type, c)
			}
		}
	}
}

// TestWhatIf checks that a preview names what changes, and changes nothing.
func TestWhatIf(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	count := func(changes []Change, kind string) (n int) {
		for _, c := range changes {
			if c.Type == kind {
				n++
			}
		}
		return n
	}
	changes, err := l.WhatIf(t.Context(), p)
	if err != nil || count(changes, "Create") != len(changes) || len(changes) < 20 {
		t.Errorf("of a new cluster: %v %v", err, changes)
	}
	l.deploy(p)
	if changes, err := l.WhatIf(t.Context(), p); err != nil || len(changes) > 0 {
		t.Errorf("of the same cluster: %v %v", err, changes)
	}
	l.requests()
	changes, err = l.WhatIf(t.Context(), example(t, func(d *definition.Definition) {
		d.Cluster.Spec.Network.SSHSources = []string{"198.51.100.7/32"}
		more := d.Pools[0]
		more.Metadata.Name = "more"
		d.Pools = append(d.Pools, more)
	}, "dev.yaml"))
	var shown []string
	for _, c := range changes {
		if c.Type == "Create" || c.Type == "Modify" {
			shown = append(shown, strings.SplitN(c.String(), "\n", 2)[0])
		}
	}
	want := []string{"+ Microsoft.Compute/virtualMachineScaleSets dev-more", "~ Microsoft.Network/networkSecurityGroups dev-cp-nsg"}
	if err != nil || !slices.Equal(shown, want) {
		t.Errorf("%v, got %q, want %q", err, shown, want)
	}
	if writes, _ := l.requests(); len(writes) > 0 {
		t.Errorf("wrote %v", writes)
	}
}

// TestTwoDeployments checks that of two deployments at once, which both saw none, the second one says that another one runs.
func TestTwoDeployments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, core.Options{Latency: 1})
		p := example(t, nil, "dev.yaml")
		other := &Deployer{Store: record.Store{Azure: l.client}}
		first := make(chan error, 1)
		_, err := l.Deploy(t.Context(), p, func([]byte) error {
			go func() {
				_, err := other.Deploy(t.Context(), p, func([]byte) error { return nil })
				first <- err
			}()
			<-time.After(12 * time.Second) // it has begun, and takes minutes
			return nil
		})
		if _, failed := errors.AsType[*failure.Error](err); failed || !errors.Is(err, ErrRunning) {
			t.Errorf("%v, want that another deployment runs", err)
		}
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

func TestCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, core.Options{Latency: 1})
		p := example(t, nil, "dev.yaml")
		done := make(chan error, 1)
		go func() {
			_, err := l.Deploy(t.Context(), p, l.save)
			done <- err
		}()
		<-time.After(12 * time.Second)
		other := &Deployer{Store: record.Store{Azure: l.client}}
		if _, err := other.Deploy(t.Context(), p, l.save); err == nil || !strings.Contains(err.Error(), "a deployment runs: that of dev, since") {
			t.Errorf("two deployments at once: %v", err)
		}
		if err := other.Abort(t.Context(), p.Names); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err == nil {
			t.Error("the canceled deployment has no error")
		}
		if r := l.deploy(p); len(r.Units) == 0 {
			t.Error("nothing was left to do")
		}
	})
}
