package cluster_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// gatewayCommands runs what the guide of the application gateway prints, as it is printed: it ends with an answer over TLS.
func gatewayCommands(c *cluster) {
	home := c.homeOf()
	defer c.must("", "delete", "--ignore-not-found", "ingress/shop", "service/shop", "deployment/shop", "secret/shop",
		"httproute/web", "gateway/web", "service/canary", "deployment/canary")
	for _, p := range []struct {
		first    string
		commands int
	}{
		{`cd "$(mktemp -d)"`, 9},
		{"kubectl describe ingress shop", 2},
		{"kubectl create deployment canary", 14},
	} {
		said, status := c.runPrinted(home, c.printedFrom("docs/guides/gateway.md", p.first, p.commands))
		if status != 0 {
			c.t.Errorf("%s: exit status %d:\n%s", p.first, status, said)
		}
	}
}

// badIngressHurtsNobody: an Ingress that cannot be served gets an Event that says why, and its neighbour is served.
func badIngressHurtsNobody(c *cluster) {
	const ingresses = `
apiVersion: v1
kind: Service
metadata: {name: gate}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: bad, annotations: {appgw.ingress.kubernetes.io/appgw-ssl-certificate: missing}}
spec:
  ingressClassName: azure-application-gateway
  rules: [{host: bad.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: gate, port: {number: 80}}}}]}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: good}
spec:
  ingressClassName: azure-application-gateway
  rules: [{host: good.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: gate, port: {number: 80}}}}]}}]
`
	c.must(ingresses, "apply", "-f", "-")
	defer c.must("", "delete", "--ignore-not-found", "ingress/bad", "ingress/good", "service/gate")
	c.must("", "wait", "ingress/good", "--for=jsonpath={.status.loadBalancer.ingress[0].ip}", "--timeout=2m")
	address := strings.TrimSpace(c.must("", "get", "ingress/good", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}"))
	answer := func(host string) string {
		out, _ := exec.CommandContext(c.t.Context(), "curl", "--silent", "--output", os.DevNull, "--write-out", "%{http_code}",
			"--retry", "30", "--retry-all-errors", "--retry-delay", "1", "--resolve", host+":80:"+address, "http://"+host+"/").Output()
		return string(out)
	}
	if got := answer("good.example.com"); got != "200" {
		c.t.Errorf("the good Ingress answers %s, want 200", got)
	}
	if len(c.events("Ingress", "bad", "NoPreInstalledSslCertificate")) == 0 {
		c.t.Errorf("no event says that the certificate is missing: %s", c.must("", "describe", "ingress/bad"))
	}
	if got := c.must("", "get", "ingress/bad", "-o", "jsonpath={.status.loadBalancer}"); strings.Contains(got, "ip") {
		c.t.Errorf("the bad Ingress has a status: %s", got)
	}
}

// homeOf returns the home folder of a user whose cluster this is.
func (c *cluster) homeOf() string {
	c.t.Helper()
	home := c.t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".kaz"), 0o700); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Symlink(c.dir, filepath.Join(home, ".kaz/local")); err != nil {
		c.t.Fatal(err)
	}
	return home
}

// runPrinted runs commands as a user in a home folder does, and returns what they say and the exit status of the last one.
func (c *cluster) runPrinted(home string, lines []string) (said string, status int) {
	script := "set -ex\nkubectl() { command kubectl --cache-dir \"$HOME/kubectl\" \"$@\"; }\n. ~/.kaz/local/env.sh\n" +
		strings.Join(lines, "\n")
	cmd := exec.CommandContext(c.t.Context(), "bash", "-c", script)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(cmd.Environ(), "HOME="+home, "TMPDIR="+home)
	out, _ := cmd.CombinedOutput() // the exit status says how it ended
	return string(out), cmd.ProcessState.ExitCode()
}
