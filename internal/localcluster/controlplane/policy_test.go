package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"path/filepath"
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
	allowed []nodeWrite // that its role allows
}

// nodeWrite is a write of a node, of which it changes an annotation or the status.
type nodeWrite struct{ method, part, body string }

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
	api := c.reach()
	for name, p := range map[string]nodeProgram{
		"cloud-node-manager": {"cloud-node-manager", []nodeWrite{
			{http.MethodPatch, "/status", `{"status":{"addresses":[{"type":"InternalIP","address":"10.240.0.66"}]}}`},
			{http.MethodPut, "", ""},
		}},
		"csi-azuredisk-node": {"csi-azuredisk-node-sa", []nodeWrite{
			{http.MethodPatch, "", `{"metadata":{"annotations":{"attack":"yes"}}}`},
		}},
	} {
		pod := "attack-" + name
		c.run("", "run", pod, "-n", "kube-system", "--image=registry.example/attack", "--overrides",
			`{"spec":{"nodeName":"simulated-0","serviceAccountName":"`+p.account+`","tolerations":[{"operator":"Exists"}]}}`)
		bound := c.run("", "create", "token", p.account, "-n", "kube-system", "--bound-object-kind=Pod", "--bound-object-name="+pod)
		free := c.run("", "create", "token", p.account, "-n", "kube-system")
		for _, write := range p.allowed {
			as := func(token, node string) (string, error) {
				body := write.body
				if body == "" {
					body = c.run("", "get", "node", node, "-o", "json")
				}
				return api.send(c.t.Context(), strings.TrimSpace(token), write, node, body)
			}
			c.refused(func() (string, error) { return as(bound, "simulated-1") })
			if out, err := as(free, "simulated-0"); err == nil || !strings.Contains(out, ownNode) {
				c.t.Errorf("%s: a token of no pod may %s a node%s: %v\n%s", name, write.method, write.part, err, out)
			}
			if out, err := as(bound, "simulated-0"); err != nil {
				c.t.Errorf("%s: the token of a pod of the node may not %s a node%s: %v\n%s", name, write.method, write.part, err, out)
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

// api is an API server that is reached without a client certificate, which would count more than a token.
type api struct {
	server string
	client *http.Client
}

func (c *cluster) reach() api {
	c.t.Helper()
	view := func(field string) string {
		return c.run("", "config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster."+field+"}")
	}
	authority, err := base64.StdEncoding.DecodeString(view("certificate-authority-data"))
	if err != nil {
		c.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		c.t.Fatal("the kubeconfig has no certificate authority")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	c.t.Cleanup(transport.CloseIdleConnections)
	return api{server: view("server"), client: &http.Client{Transport: transport}}
}

// send makes a write as the owner of a token, without an effect. It returns what the API server answers, and an error if it refuses.
func (a api) send(ctx context.Context, token string, write nodeWrite, node, body string) (string, error) {
	url := a.server + "/api/v1/nodes/" + node + write.part + "?dryRun=All"
	r, err := http.NewRequestWithContext(ctx, write.method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", map[string]string{
		http.MethodPatch: "application/merge-patch+json", http.MethodPut: "application/json",
	}[write.method])
	answer, err := a.client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return string(said), err
}
