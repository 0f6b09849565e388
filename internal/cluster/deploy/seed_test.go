package deploy

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"kaz/internal/cluster"
	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/pki"
	"kaz/internal/cluster/record"
	"kaz/internal/cluster/units"
	"kaz/internal/localazure/core"
)

// secretDocuments are the secrets of a cluster as ARM shows them, with their versions.
func (l *lab) secretDocuments(p cluster.Plan) string {
	l.t.Helper()
	var all strings.Builder
	for _, what := range []string{"pki-ca", "pki-etcd-ca", "pki-front-proxy-ca", "pki-sa", "bootstrap-token", "encryption"} {
		doc, err := l.client.Get(l.t.Context(), p.Names.VaultID().Child("secrets", p.Names.Secret(what)))
		if err != nil {
			l.t.Fatal(err)
		}
		all.Write(doc)
	}
	return all.String()
}

// badVault is a plan whose key vault Azure refuses.
func badVault(t *testing.T) cluster.Plan {
	return example(t, func(d *definition.Definition) {
		d.Patches = append(d.Patches, definition.TemplatePatch{Spec: definition.PatchSpec{
			Target: definition.Target{Type: "Microsoft.KeyVault/vaults"},
			Merge:  map[string]any{"properties": map[string]any{"sku": map[string]any{"name": "golden"}}}}})
	}, "dev.yaml")
}

// TestSecretsStay checks that no failed, deleted or forgotten deployment makes a deployment write the secrets of a cluster again.
func TestSecretsStay(t *testing.T) {
	for name, lose := range map[string]func(*lab, cluster.Plan){
		"the deployment of the vault is deleted": func(l *lab, p cluster.Plan) {
			if err := l.client.Delete(l.t.Context(), record.DeploymentID(p.Names.Group(), p.Names.UnitDeployment("vault"))); err != nil {
				l.t.Fatal(err)
			}
		},
		"all deployments are deleted": func(l *lab, p cluster.Plan) { l.forgetHistory(p.Names.Group()) },
		"Azure deletes old deployments": func(l *lab, p cluster.Plan) {
			for i := range 701 {
				body := `{"properties":{"mode":"Incremental","template":{"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0","resources":[]}}}`
				if err := l.write(record.DeploymentID(p.Names.Group(), fmt.Sprintf("other-%d", i)), body); err != nil {
					l.t.Fatal(err)
				}
			}
			if state, err := l.Read(l.t.Context(), p.Names); err != nil || state.Main != nil || len(state.Units) > 0 {
				l.t.Fatalf("the deployments of the cluster are still there: %v", err)
			}
		},
		"a change of the vault fails": func(l *lab, p cluster.Plan) {
			if _, err := l.Deploy(l.t.Context(), badVault(l.t), l.save); err == nil {
				l.t.Fatal("the deployment did not fail")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, core.Options{})
			p := example(t, nil, "dev.yaml")
			l.deploy(p)
			before := l.secretDocuments(p)
			lose(l, p)
			l.saved = nil
			l.deploy(p)
			if after := l.secretDocuments(p); after != before || l.saved != nil {
				t.Errorf("secrets were written again, or a kubeconfig:\n%s\n%s", before, after)
			}
			if r := l.deploy(p); !r.Unchanged {
				t.Errorf("the deployment never ends: %v", r.Units)
			}
		})
	}
}

// TestLostSecret checks that a secret of a cluster with machines is not made again, and that only a clear answer makes it absent.
func TestLostSecret(t *testing.T) {
	const none = `{"error":{"code":"ResourceNotFound","message":"none"}}`
	for name, c := range map[string]struct {
		end, body string
		status    int
		want      []string
	}{
		"a secret": {"/secrets/dev-pki-sa", none, 404,
			[]string{"lacks dev-pki-sa", "dev-cp-0", "az keyvault secret recover --vault-name kv-dev-", "--name dev-pki-sa"}},
		"no right":        {"/secrets/dev-pki-sa", `{"error":{"code":"Forbidden","message":"no"}}`, 403, []string{"whether", "dev-pki-sa exists"}},
		"an odd answer":   {"/secrets/dev-pki-sa", `{"value":[]}`, 200, []string{"dev-pki-sa exists", `the id ""`}},
		"no JSON":         {"/secrets/dev-pki-sa", `<html>`, 200, []string{"dev-pki-sa"}},
		"the whole vault": {"/vaults/VAULT", none, 404, []string{"does not exist", "dev-cp-0", "az keyvault recover --name kv-dev-"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, core.Options{})
			p := example(t, nil, "dev.yaml")
			l.deploy(p)
			l.forgetHistory(p.Names.Group())
			before := l.secretDocuments(p)
			l.connect(fixedAnswer{l.azure.Transport(), strings.ReplaceAll(c.end, "VAULT", p.Names.Vault()), c.status, c.body})
			l.saved = nil
			l.requests()
			_, err := l.Deploy(t.Context(), p, l.save)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
			if writes, _ := l.requests(); len(writes) > 0 || l.saved != nil {
				t.Errorf("wrote %v, kubeconfig %t", writes, l.saved != nil)
			}
			l.connect(l.azure.Transport())
			if after := l.secretDocuments(p); after != before {
				t.Errorf("secrets were written again")
			}
		})
	}
}

// TestLostSecretUnlisted checks that machines that no list has count, too.
func TestLostSecretUnlisted(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	l.deploy(p)
	l.forgetHistory(p.Names.Group())
	gone := fixedAnswer{l.azure.Transport(), "/secrets/dev-pki-ca", 404, `{"error":{"code":"ResourceNotFound","message":"none"}}`}
	empty := fixedAnswer{gone, "/providers/Microsoft.Compute/virtualMachines", 200, `{"value":[]}`}
	l.connect(lagging{empty, func(string) bool { return true }})
	if _, err := l.Deploy(t.Context(), p, l.save); err == nil || !strings.Contains(err.Error(), "dev-cp-0") {
		t.Errorf("got %v", err)
	}
}

// bundles answers for the secrets of a key vault.
type bundles map[string]string

// Do answers a request.
func (b bundles) Do(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	text, has := b[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
	if !has {
		w.WriteHeader(http.StatusNotFound)
	}
	_, _ = fmt.Fprintf(w, `{"value":%q}`, text)
	return w.Result(), nil
}

// TestRestOfSecrets checks that a first deployment that stopped within the key vault goes on with the secrets that are there: the join
// token belongs to the certificate authority that exists.
func TestRestOfSecrets(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	made, err := pki.New(l.Clock())
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := made.CA.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	l.Planes = dataplane.Client{HTTP: bundles{"dev-pki-ca": string(bundle)},
		Token: func(context.Context, string) (string, error) { return "t", nil }}
	given, kubeconfig, err := l.secrets(t.Context(), p, seed{parameters: []string{"bootstrapToken", "pkiServiceAccount"}})
	if err != nil || kubeconfig != nil || len(given) != 2 || given["pkiServiceAccount"] == "" {
		t.Fatalf("%d secrets, kubeconfig %s, %v", len(given), kubeconfig, err)
	}
	if join, err := pki.ParseJoin(given["bootstrapToken"]); err != nil || join.CACertHash != made.CA.Pin() {
		t.Errorf("the token is for authority %v, want %s: %v", join.CACertHash, made.CA.Pin(), err)
	}
	all := seed{}
	for parameter := range units.Secrets() {
		all.parameters = append(all.parameters, parameter)
	}
	if given, kubeconfig, err = l.secrets(t.Context(), p, all); err != nil || len(given) != 6 || kubeconfig == nil {
		t.Errorf("a new cluster: %d secrets, %v", len(given), err)
	}
}

// TestFirstDeploymentGoesOn checks that a first deployment that failed after the secrets were written keeps them and its kubeconfig.
func TestFirstDeploymentGoesOn(t *testing.T) {
	l := newLab(t, core.Options{})
	broken := example(t, func(d *definition.Definition) {
		d.Patches = append(d.Patches, definition.TemplatePatch{Spec: definition.PatchSpec{
			Target: definition.Target{Type: record.MachineType},
			Merge:  map[string]any{"properties": map[string]any{"hardwareProfile": map[string]any{"vmSize": "Standard_None"}}}}})
	}, "dev.yaml")
	if _, err := l.Deploy(t.Context(), broken, l.save); err == nil {
		t.Fatal("the deployment did not fail")
	}
	p := example(t, nil, "dev.yaml")
	before, kubeconfig := l.secretDocuments(p), l.saved
	l.forgetHistory(p.Names.Group())
	l.deploy(p)
	if l.secretDocuments(p) != before || !bytes.Equal(kubeconfig, l.saved) {
		t.Error("the secrets were written again")
	}
}

// TestForgotten checks that Azure keeps the definition and an open change although the history is deleted.
func TestForgotten(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "ha.yaml")
	l.deploy(p)
	r := record.Change{Definition: p.Definition, Began: "2026-01-02T03:04:05Z", Replace: []string{"cp-1"}}
	if err := l.WriteChange(t.Context(), p.Names, r); err != nil {
		t.Fatal(err)
	}
	l.forgetHistory(p.Names.Group())
	place := record.Place{Subscription: p.Names.Group().Subscription(), Group: p.Names.Group().Name(), Name: "prod"}.Names()
	open, err := l.Open(t.Context(), place)
	if err != nil || open == nil || !reflect.DeepEqual(*open, r) {
		t.Fatalf("the open change is %v, %v", open, err)
	}
	status, err := l.Status(t.Context(), place)
	if err != nil || status.State != record.Forgotten || status.Version != "1.36.3" || status.Change == "" {
		t.Errorf("status %+v, %v", status, err)
	}
	if _, err := l.Deploy(t.Context(), p, l.save); err == nil || !strings.Contains(err.Error(), "has begun and not ended") {
		t.Errorf("a deployment beside an open change: %v", err)
	}
	if err := l.Close(t.Context(), place); err != nil {
		t.Fatal(err)
	}
	if open, err := l.Open(t.Context(), place); err != nil || open != nil {
		t.Errorf("the change is not closed: %v, %v", open, err)
	}
	recorded, found, err := l.Recorded(t.Context(), place)
	if err != nil || !found || !record.SameText(recorded.Definition, p.Definition) {
		t.Fatalf("the definition is not recorded: %t, %v", found, err)
	}
	fixed := example(t, func(d *definition.Definition) { d.Cluster.Spec.Kubernetes.ServiceCIDR = "10.1.0.0/16" }, "ha.yaml")
	if _, err := l.Deploy(t.Context(), fixed, l.save); err == nil || !strings.Contains(err.Error(), "(fixed)") {
		t.Errorf("a change of what is fixed: %v", err)
	}
	if r := l.deploy(recorded); len(r.Units) != len(p.Graph.Units) {
		t.Errorf("deployed %v", r.Units)
	}
}

// TestEarlierOpenChange checks that a change that an earlier version of kaz has begun is found, and closed.
func TestEarlierOpenChange(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	l.deploy(p)
	body := `{"properties":{"mode":"Incremental","template":{"$schema":"https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#","contentVersion":"1.0.0.0","parameters":{"change":{"type":"object"}},
		"resources":[]},"parameters":{"change":{"value":{"began":"2026-01-02T03:04:05Z"}}}}}`
	if err := l.write(record.DeploymentID(p.Names.Group(), p.Names.Change()), body); err != nil {
		t.Fatal(err)
	}
	if open, err := l.Open(t.Context(), p.Names); err != nil || open == nil || open.Began == "" {
		t.Errorf("the open change is %v, %v", open, err)
	}
	if err := l.Close(t.Context(), p.Names); err != nil {
		t.Error(err)
	}
	if open, err := l.Open(t.Context(), p.Names); err != nil || open != nil {
		t.Errorf("the change is not closed: %v, %v", open, err)
	}
}

// TestEarlierCluster checks that a cluster of an earlier version of kaz, whose definition only its deployment has, gets its template spec
// without a deployment.
func TestEarlierCluster(t *testing.T) {
	l := newLab(t, core.Options{})
	p := example(t, nil, "dev.yaml")
	l.deploy(p)
	if err := l.client.Delete(t.Context(), record.SpecID(p.Names)); err != nil {
		t.Fatal(err)
	}
	if r := l.deploy(p); !r.Unchanged {
		t.Errorf("deployed %v", r.Units)
	}
	l.forgetHistory(p.Names.Group())
	if _, found, err := l.Recorded(t.Context(), p.Names); err != nil || !found {
		t.Errorf("the definition is not recorded: %v", err)
	}
}
