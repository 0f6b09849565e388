package cluster_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestBootedOutbound checks from which public addresses machines connect to the internet, for each type of outbound traffic.
// This machine stands for the internet. Without outbound traffic there must be no connection. With it a Service answers, and the
// machines reach the API server at its public address, though its allowed sources have this machine alone.
func TestBootedOutbound(t *testing.T) {
	b := startBooting(t, 1)
	url := sourceEcho(t)
	for _, test := range []struct{ kind, access, member, node string }{
		{"NATGateway", "Public", "out-pip-0", "out-pip-0"},
		{"LoadBalancer", "Public", "api-pip", "out-pip-0"},
		{"None", "PublicAndInternal", "", ""},
	} {
		t.Run(test.kind, func(t *testing.T) {
			one := *b
			one.t = t
			// The image has what the mirror would have.
			const network = "  network: {outbound: {type: %s}, apiServer: {access: %s, allowedSources: [198.18.0.2/32]}}\n" +
				"  kubernetes: {artifactMirror: \"https://mirror.example.com\", "
			c := one.cluster("dev", strings.Replace(example(t, "dev.yaml"), "  kubernetes: {", fmt.Sprintf(network, test.kind, test.access), 1))
			c.serves(2, c.version)
			member := c.members()[0]
			node := strings.TrimSpace(c.must(c.run("", "get", "nodes", "-l", "!node-role.kubernetes.io/control-plane", "-o",
				"jsonpath={.items[0].metadata.name}")))
			for machine, name := range map[string]string{member: test.member, node: test.node} {
				want := ""
				if name != "" {
					want = c.publicAddress("dev-" + name)
				}
				got, err := c.try(machine, "curl", "--silent", "--max-time", "5", url)
				if got != want || (err == nil) != (want != "") {
					t.Errorf("%s comes with %q, want %q: %v", machine, got, want, err)
				}
				if name == "" {
					continue
				}
				readyz := fmt.Sprintf("https://%s:6443/readyz", c.publicAddress("dev-api-pip"))
				if got, err := c.try(machine, "curl", "--silent", "--insecure", "--max-time", "5", readyz); got != "ok" || err != nil {
					t.Errorf("%s asks %s: %q, want ok: %v", machine, readyz, got, err)
				}
			}
			c.destroyed("--purge")
		})
	}
}

// TestBootedInternal deploys a cluster with an API server inside the network only. The member and the node reach it there, also the member
// through the load balancer that leads to itself. From outside a change says why it cannot be made, and changes nothing.
func TestBootedInternal(t *testing.T) {
	b := startBooting(t, 1)
	const network = "  network: {apiServer: {access: Internal}}\n  kubernetes:"
	c := b.cluster("dev", strings.Replace(example(t, "dev.yaml"), "  kubernetes:", network, 1))
	var nodes []string
	wait(t, 3*time.Minute, "two nodes that are ready", func() string {
		out, err := c.try("dev-cp-0", "kubectl", "--kubeconfig", "/etc/kubernetes/admin.conf", "get", "nodes", "--no-headers")
		nodes = nil
		for line := range strings.Lines(out) {
			if fields := strings.Fields(line); len(fields) > 1 && fields[1] == "Ready" {
				nodes = append(nodes, fields[0])
			}
		}
		if err != nil || len(nodes) != 2 {
			return out
		}
		return ""
	})
	for _, machine := range nodes {
		out, err := c.try(machine, "curl", "--silent", "--insecure", "--max-time", "5", "https://api.dev.kaz.internal:6443/readyz")
		if err != nil || out != "ok" {
			t.Errorf("%s: %v %s", machine, err, out)
		}
	}
	if out, err := c.kaz("scale", "dev", "general", "--count", "2"); err == nil || !strings.Contains(out, "is reached from its network only") {
		t.Errorf("a change from outside: %v\n%s", err, out)
	}
}

// sourceEcho starts a server at the address of this machine in the network of the local Azure. It answers with the client's address.
func sourceEcho(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "198.18.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = err.Error()
		}
		_, _ = fmt.Fprint(w, host)
	})}
	go func() { _ = server.Serve(l) }() // it returns when it is closed
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + l.Addr().String() + "/"
}

// publicAddress is the address of a public IP.
func (c *bootedCluster) publicAddress(name string) string {
	c.t.Helper()
	out, err := exec.CommandContext(c.t.Context(), kaz(), "local", "azure", "list", "publicIPAddresses", "-o", "json", "--endpoint",
		c.endpoint).Output()
	var all []struct {
		Name       string
		Properties struct{ IPAddress string }
	}
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err != nil {
		c.t.Fatalf("public addresses: %v\n%s", err, out)
	}
	for _, ip := range all {
		if ip.Name == name {
			return ip.Properties.IPAddress
		}
	}
	c.t.Fatalf("there is no public address %s in %s", name, out)
	return ""
}
