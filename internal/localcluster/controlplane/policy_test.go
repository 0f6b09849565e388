package controlplane

import (
	"context"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kaz/internal/pause"
)

// otherNode is a second simulated node, without the taint of new nodes.
const otherNode = `
apiVersion: v1
kind: Node
metadata:
  name: simulated-1
  labels: {` + SimulatedLabel + `: "true", kubernetes.io/hostname: simulated-1, kubernetes.io/os: linux}
`

// nodeProgram is a program that runs on each node, with the rights of its manifest.
type nodeProgram struct {
	account string
	// allowed are the writes of nodes that its role allows. %s is the name of the node, whose object is the standard input.
	allowed [][]string
}

// ownNode is the message of the policies of the charts.
const ownNode = "may change only the node on which its pod runs"

// holdsNodePrograms checks that the policies of the manifests let programs of nodes write the node of their pod and no other one: with the
// token of their pod, and with a token of their account that names no node.
func (c *cluster) holdsNodePrograms() {
	c.t.Helper()
	manifests := filepath.Join("..", "..", "..", "deploy", "manifests")
	for _, name := range []string{"cloud-node-manager.yaml", "csi-azuredisk-node.yaml"} {
		c.run("", "apply", "-f", filepath.Join(manifests, name))
	}
	c.run(otherNode, "apply", "-f", "-")
	access := c.withoutCertificate()
	patch := `{"metadata":{"annotations":{"attack":"yes"}}}`
	for name, p := range map[string]nodeProgram{
		"cloud-node-manager": {"cloud-node-manager", [][]string{
			{"patch", "node", "%s", "--subresource=status", "-p", `{"status":{"addresses":[{"type":"InternalIP","address":"10.240.0.66"}]}}`},
			{"replace", "-f", "-"},
		}},
		"csi-azuredisk-node": {"csi-azuredisk-node-sa", [][]string{{"patch", "node", "%s", "-p", patch}}},
	} {
		pod := "attack-" + name
		c.run("", "run", pod, "-n", "kube-system", "--image=registry.example/attack", "--overrides",
			`{"spec":{"nodeName":"simulated-0","serviceAccountName":"`+p.account+`","tolerations":[{"operator":"Exists"}]}}`)
		bound := c.run("", "create", "token", p.account, "-n", "kube-system", "--bound-object-kind=Pod", "--bound-object-name="+pod)
		free := c.run("", "create", "token", p.account, "-n", "kube-system")
		for _, write := range p.allowed {
			as := func(token, node string) (string, error) {
				args := slices.Concat(access, []string{"--token", strings.TrimSpace(token), "--dry-run=server"}, write)
				for i, arg := range args {
					args[i] = strings.ReplaceAll(arg, "%s", node)
				}
				cmd := exec.CommandContext(c.t.Context(), c.kubectl, args...)
				cmd.Env = []string{"HOME=" + c.t.TempDir()}
				cmd.Stdin = strings.NewReader(c.run("", "get", "node", node, "-o", "json"))
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			c.refused(func() (string, error) { return as(bound, "simulated-1") })
			if out, err := as(free, "simulated-0"); err == nil || !strings.Contains(out, ownNode) {
				c.t.Errorf("%s: a token of no pod may %q: %v\n%s", name, write, err, out)
			}
			if out, err := as(bound, "simulated-0"); err != nil {
				c.t.Errorf("%s: the token of a pod of the node may not %q: %v\n%s", name, write, err, out)
			}
		}
	}
	c.run("", "delete", "node", "simulated-1")
	for _, name := range []string{"cloud-node-manager.yaml", "csi-azuredisk-node.yaml"} {
		c.run("", "delete", "-f", filepath.Join(manifests, name))
	}
}

// refused waits until a policy refuses a write. The API server learns of a new policy within a moment.
func (c *cluster) refused(write func() (string, error)) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	for {
		out, err := write()
		if err != nil && strings.Contains(out, ownNode) {
			return
		}
		if pause.For(ctx, 200*time.Millisecond) != nil {
			c.t.Fatalf("no policy refuses it: %v\n%s", err, out)
		}
	}
}

// withoutCertificate are the arguments by which kubectl reaches the API server as nobody: a client certificate counts more than a token.
func (c *cluster) withoutCertificate() []string {
	c.t.Helper()
	view := func(field string) string {
		return c.run("", "config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster."+field+"}")
	}
	authority, err := base64.StdEncoding.DecodeString(view("certificate-authority-data"))
	if err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(c.t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, authority, 0o600); err != nil {
		c.t.Fatal(err)
	}
	return []string{"--kubeconfig", os.DevNull, "--server", view("server"), "--certificate-authority", file}
}
