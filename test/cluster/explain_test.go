package cluster_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/testkit"
)

// explained runs kaz explain service and returns what it printed and its exit status.
func (c *cluster) explained(args ...string) (out, errs string, status int) {
	c.t.Helper()
	out, errs, err := output(c.t, "", kaz(), append([]string{"explain", "service", "--dir", c.dir}, args...)...)
	if err == nil {
		return out, errs, 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		c.t.Fatal(err)
	}
	return out, errs, exit.ExitCode()
}

// settled waits until kaz explain has nothing to do.
func (c *cluster) settled(args ...string) {
	c.t.Helper()
	wait(c.t, addressWithin, "nothing to do", func() string {
		out, errs, status := c.explained(args...)
		if status == 0 {
			return ""
		}
		return fmt.Sprintf("exit status %d:\n%s%s", status, out, errs)
	})
}

// mustExplain is kaz explain that has to end with a status and print all of the words.
func (c *cluster) mustExplain(status int, args []string, words ...string) string {
	c.t.Helper()
	out, errs, got := c.explained(args...)
	if got != status {
		c.t.Errorf("kaz explain service %s: exit status %d, want %d:\n%s%s", strings.Join(args, " "), got, status, out, errs)
	}
	for _, w := range words {
		if !strings.Contains(out+errs, w) {
			c.t.Errorf("kaz explain service %s: %q is missing in:\n%s%s", strings.Join(args, " "), w, out, errs)
		}
	}
	return out
}

// later is a load balancer class that no controller serves yet.
const later = "example.com/later"

// explain runs kaz explain before a Service is served, afterwards, after a manual change in Azure,
// and for an invalid Service.
func explain(c *cluster) {
	log := c.requestLog()
	unserved := testkit.NewService("unserved", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80})
	c.must(classed(c, unserved, later), "apply", "-f", "-")
	c.mustExplain(2, []string{"default/unserved", "--load-balancer-class", later},
		"Service default/unserved: changes are pending", "+ public IP", "1. create ", "finalizers: +")
	c.mustExplain(1, []string{"default/unserved"}, "load balancer class", later)
	explainedJSON(c, "default/unserved", "--load-balancer-class", later)
	dryRun(c)
	_, writes := log.since(c.t)
	writes = slices.DeleteFunc(writes, func(w string) bool { return strings.Contains(w, "/routeTables/") }) // the nodes' routes
	if len(writes) > 0 {
		c.t.Errorf("looking wrote %q", writes)
	}
	if got := c.service("unserved"); len(got.Finalizers)+len(got.Status.LoadBalancer.Ingress) > 0 {
		c.t.Errorf("looking changed the Service: %+v", got)
	}
	c.must("", "delete", "service", "unserved")

	web := testkit.NewService("explained", corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80})
	served, err := c.apply(web)
	if err != nil {
		c.t.Fatal(err)
	}
	c.settled("--all") // nodes may join the pool a moment later
	c.mustExplain(0, []string{"default/explained"}, "nothing to do", "= rule", served.Status.LoadBalancer.Ingress[0].IP,
		"Steps in Azure: none")
	c.mustExplain(0, []string{"--all"}, "Service default/explained: nothing to do")
	drift(c)
	web.Annotations = map[string]string{idleTimeout: "30"} // serving it again puts the rest back, too
	if _, err := c.apply(web); err != nil {
		c.t.Fatal(err)
	}
	c.settled("default/explained")
	web.Annotations[idleTimeout] = "soon"
	text, err := manifest(web)
	if err != nil {
		c.t.Fatal(err)
	}
	c.must(text, "apply", "-f", "-")
	c.mustExplain(1, []string{"default/explained"}, "refused; what it has in Azure stays as it is", idleTimeout, `"soon"`, "idle 30 min",
		"not as asked for: default/explained")
	cannotExplain(c)
	c.removeAll("explained")
	c.mustExplain(0, []string{"--all"}, "no Service of type LoadBalancer is served")
}

const idleTimeout = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout"

// classed is the manifest of a Service with a load balancer class.
func classed(c *cluster, s *corev1.Service, class string) string {
	c.t.Helper()
	text, err := manifest(s)
	if err != nil {
		c.t.Fatal(err)
	}
	return strings.Replace(text, "\nspec:\n", "\nspec:\n  loadBalancerClass: "+class+"\n", 1)
}

// explainedJSON: what other programs read says the same.
func explainedJSON(c *cluster, args ...string) {
	c.t.Helper()
	type explanation struct {
		Services []struct{ Service, State string }
		Steps    []struct{ Op, Text string }
	}
	for _, form := range []string{"json", "yaml"} {
		out, _, status := c.explained(append(args, "-o", form)...)
		var e explanation
		unmarshal := json.Unmarshal
		if form == "yaml" {
			unmarshal = func(text []byte, v any) error { return yaml.Unmarshal(text, v) }
		}
		if err := unmarshal([]byte(out), &e); err != nil || status != 2 || len(e.Services) != 1 || e.Services[0].State != "pending" {
			c.t.Errorf("-o %s: status %d, %v, %+v:\n%s", form, status, err, e, out)
			continue
		}
		// One plan has all steps, though the address is not known yet.
		for _, want := range []string{"create publicIPAddresses", "create loadBalancers", "update networkSecurityGroups"} {
			op, kind, _ := strings.Cut(want, " ")
			if !slices.ContainsFunc(e.Steps, func(s struct{ Op, Text string }) bool {
				return s.Op == op && strings.Contains(s.Text, "/Microsoft.Network/"+kind+"/")
			}) {
				c.t.Errorf("-o %s: no step to %s:\n%s", form, want, out)
			}
		}
	}
}

// dryRun: a second cloud-controller-manager says what it would do, and does not.
func dryRun(c *cluster) {
	c.t.Helper()
	script := `. "$1" && exec "$2" --dry-run --load-balancer-class "$3" --cloud-config "$4" --kubeconfig "$KUBECONFIG" --cluster-name kaz --secure-port=0`
	dry := start(c.t, exec.CommandContext(c.t.Context(), "/bin/bash", "-c", script, "bash",
		c.status.Environment, filepath.Join(programs, "cloud-controller-manager"), later, c.status.CloudConfig))
	dry.says("Service default/unserved: changes are pending", addressWithin)
	dry.says("1. create ", addressWithin)
	dry.says("azure would be changed", addressWithin)
	c.must("", "annotate", "service", "unserved", idleTimeout+"=soon")
	dry.says("refused; what it has in Azure stays as it is", addressWithin)
	c.must("", "annotate", "service", "unserved", idleTimeout+"-")
	stopped(c.t, dry, syscall.SIGTERM)
}

// drift changes a rule and deletes the probe. If the controller repairs them at the same moment, it
// does so again.
func drift(c *cluster) {
	c.t.Helper()
	id := c.group().Resource(network.LoadBalancers, "kaz")
	wait(c.t, addressWithin, "what was changed by hand is explained", func() string {
		lb := read[network.LoadBalancer](c, id)
		rule := &lb.Properties.LoadBalancingRules[0].Properties
		rule.Probe, lb.Properties.Probes = nil, nil
		rule.IdleTimeoutInMinutes = new(int32(9))
		doc, err := json.Marshal(lb)
		if err == nil {
			_, err = c.azure.Put(c.t.Context(), azure.Write{ID: id, Body: doc})
		}
		if err != nil {
			return err.Error()
		}
		for _, args := range [][]string{{"default/explained"}, {"--all"}} {
			out, errs, status := c.explained(args...)
			for _, w := range []string{"~ rule", "idle 9 min", "+ probe", "idleTimeoutInMinutes: 9 -> 4", "1. update "} {
				if status != 2 || !strings.Contains(out, w) {
					return fmt.Sprintf("%s: exit status %d, %q is looked for in:\n%s%s", args, status, w, out, errs)
				}
			}
		}
		return ""
	})
}

// cannotExplain: one clear sentence for what cannot be explained.
func cannotExplain(c *cluster) {
	c.t.Helper()
	dir := c.t.TempDir()
	dead := filepath.Join(dir, "dead.conf")
	text := strings.ReplaceAll(string(readFile(c.t, c.status.Kubeconfig)), c.status.Server, "https://127.0.0.1:1")
	if err := os.WriteFile(dead, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	var info struct{ ClientID string }
	if err := json.Unmarshal(readFile(c.t, filepath.Join(c.dir, "azure-state-running.json")), &info); err != nil {
		c.t.Fatal(err)
	}
	wrong := c.changed(map[string]any{"useManagedIdentityExtension": false, "aadClientId": info.ClientID,
		"aadClientSecret": "not-the-secret"})
	began := time.Now()
	for _, test := range []struct {
		args, words []string
	}{
		{[]string{"default/nowhere"}, []string{"there is no Service default/nowhere"}},
		{[]string{"default/kubernetes"}, []string{"default/kubernetes is a Service of type ClusterIP"}},
		{[]string{"web"}, []string{`"web": want NAMESPACE/NAME`}},
		{[]string{}, []string{"no Service given", "--all"}},
		{[]string{"default/explained", "--all"}, []string{"--all and default/explained"}},
		{[]string{"default/explained", "-o", "xml"}, []string{"--output xml: want text, wide, json, yaml, svg or picture"}},
		{[]string{"--all", "--kubeconfig", dead, "--cloud-config", c.status.CloudConfig},
			[]string{"cannot reach Kubernetes at https://127.0.0.1:1"}},
		{[]string{"--all", "--kubeconfig", filepath.Join(dir, "none")}, []string{"kubeconfig", filepath.Join(dir, "none")}},
		{[]string{"--all", "--cloud-config", filepath.Join(dir, "none.json")},
			[]string{"cloud configuration", filepath.Join(dir, "none.json")}},
		{[]string{"--all", "--cloud-config", wrong}, []string{"AADSTS7000215", info.ClientID}},
		{[]string{"--all", "--cluster-name", "another"}, []string{"is not the name of this cluster", "set --cluster-name=kaz"}},
	} {
		args := append([]string{"explain", "service"}, test.args...)
		if !slices.Contains(args, "--kubeconfig") {
			args = append(args, "--dir", c.dir)
		}
		cmd := exec.CommandContext(c.t.Context(), kaz(), args...)
		cmd.Env = append(cmd.Environ(), "SSL_CERT_FILE="+filepath.Join(c.dir, "none")) // what is not the cluster's is not trusted
		refuses(c.t, cmd, test.words...)
	}
	nobody := exec.CommandContext(c.t.Context(), kaz(), "explain", "service", "--all")
	nobody.Env = []string{"HOME=" + dir}
	refuses(c.t, nobody, "no cluster given", dir)
	elsewhere := exec.CommandContext(c.t.Context(), kaz(), "explain", "service", "--all", "--dir", dir)
	elsewhere.Env = []string{"HOME=" + dir, "KUBECONFIG=" + c.status.Kubeconfig}
	refuses(c.t, elsewhere, "no cluster is up in "+dir)
	named := exec.CommandContext(c.t.Context(), kaz(), "explain", "service", "--all")
	named.Env = []string{"HOME=" + dir, "KUBECONFIG=" + c.status.Kubeconfig}
	if said, err := named.CombinedOutput(); err == nil || !strings.Contains(string(said), "not as asked for: default/explained") {
		c.t.Errorf("with KUBECONFIG only: %v:\n%s", err, said)
	}
	c.t.Logf("what cannot be explained: %s", short(time.Since(began)))
}
