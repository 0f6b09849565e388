package web

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"kaz/internal/localazure/client"
)

var real = flag.Bool("real", false, "run the cluster on real nodes, as root on Linux; no other cluster on this machine may have such nodes")

// running is a cluster that kaz local up runs.
type running struct {
	t                   *testing.T
	kaz, dir            string
	kubectlFile, config string
	link                string
}

// up builds kaz, and starts a cluster that ends with the test.
func up(t *testing.T) *running {
	t.Helper()
	c := &running{t: t, kaz: filepath.Join(t.TempDir(), "kaz"), dir: filepath.Join(t.TempDir(), "local")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", c.kaz, "./cmd/kaz")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	kind := "hollow"
	if *real {
		kind = "real"
		alone(t)
	}
	program := exec.CommandContext(context.WithoutCancel(t.Context()), c.kaz, "local", "up", "--dir", c.dir, "--nodes", "3", "--nodes-kind", kind)
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	if err == nil {
		err = program.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = program.Process.Signal(syscall.SIGTERM) // it may have ended
		<-ended
		if err := program.Wait(); err != nil {
			t.Errorf("kaz local up: %v", err)
		}
	})
	isUp := make(chan bool, 1)
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			t.Log(lines.Text())
			if strings.HasPrefix(lines.Text(), "The cluster is up.") {
				isUp <- true
			}
		}
		isUp <- false
	}()
	if !<-isUp {
		t.Fatal("the cluster does not start")
	}
	var status struct{ Kubectl, Kubeconfig string }
	if err := json.Unmarshal([]byte(c.run(c.kaz, "", "local", "status", "--dir", c.dir, "-o", "json")), &status); err != nil {
		t.Fatal(err)
	}
	c.kubectlFile, c.config = status.Kubectl, status.Kubeconfig
	c.link = strings.TrimSpace(c.run(c.kaz, "", "local", "azure", "web", "--dir", c.dir))
	return c
}

// alone waits until no other test on this machine has real nodes, because public addresses are unique.
func alone(t *testing.T) {
	t.Helper()
	lock, err := os.OpenFile("/tmp/kaz-real-nodes.lock", os.O_CREATE|os.O_RDWR, 0o600) // one for all tests
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() }) // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// run runs a program, which must succeed, and returns its standard output.
func (c *running) run(program, input string, args ...string) string {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), program, args...)
	command.Stdin, command.Stderr = strings.NewReader(input), os.Stderr
	out, err := command.Output()
	if err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}

func (c *running) kubectl(input string, args ...string) string {
	c.t.Helper()
	return c.run(c.kubectlFile, input, append([]string{"--kubeconfig", c.config}, args...)...)
}

const objects = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "kaz.local/web:1", imagePullPolicy: Never}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
`

// rows is a script: the texts of the rules of the load balancer on the map.
const rows = `[...(` + balancer + `?.querySelectorAll('.rows li') || [])].map(e => e.innerText.replaceAll(/\s+/g, ' ')).filter(e => e.startsWith('rule ')).join('; ')`

const balancer = `[...document.querySelectorAll('.card')].find(e => e.querySelector('.kind').textContent === 'LB')`

// TestOnCluster follows a Service of a cluster that runs through the page of its Azure: it comes, is explained, and goes. On real nodes the
// map shows which members get requests.
func TestOnCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds kaz and starts a cluster")
	}
	program := chromium(t)
	c := up(t)
	b := browse(t, program, client.Info{Web: c.link}, 5*time.Minute)
	b.patience = time.Minute // probes, and a controller
	b.size(1440, "light")
	b.open("")
	b.waitFor("machines", shows("nodes0"))
	if got := b.script(rows); got != "" {
		t.Errorf("rules before there is a Service: %s", got)
	}
	c.kubectl(objects, "apply", "-f", "-")
	b.waitFor("the rule comes", rows+" !== ''")
	b.waitFor("the load balancer glows", balancer+".matches('.created, .changed')")
	if *real {
		b.waitFor("the node with the pod gets requests", rows+".includes('healthy 1 of 3')")
		b.picture("cluster-health-1440")
		c.kubectl("", "patch", "service", "web", "-p", `{"spec":{"externalTrafficPolicy":"Cluster"}}`)
		b.waitFor("all nodes get requests", rows+".includes('healthy 3 of 3')")
	}
	c.kubectl("", "wait", "service/web", "--for=jsonpath={.status.loadBalancer.ingress}", "--timeout=1m")

	b.open("why")
	b.waitFor("the Service can be chosen", shows("default/web"))
	const chosen = "[...document.querySelectorAll('.subjects a')].find(e => e.innerText === 'default/web')"
	b.do(chromedp.Evaluate[chromedp.Void](chosen + ".click()"))
	const picture = "document.querySelector('.why-picture svg')"
	b.waitFor("the picture", picture+"?.textContent.includes('default/web')")
	for _, kind := range []string{"public IP", "frontend", "rule", "probe", "pool"} {
		b.waitFor(kind+" in the picture", fmt.Sprintf("%s.textContent.includes('= %s')", picture, kind))
	}
	for _, width := range []int64{360, 1440} {
		for _, colours := range []string{"light", "dark"} {
			b.size(width, colours)
			for name, path := range map[string]string{"map": "", "traffic": "traffic", "faults": "faults", "why": "why?kind=service&name=default/web"} {
				b.open(path)
				if got := b.script(audit); got != "" {
					t.Errorf("%s, %d pixels, %s:\n%s", name, width, colours, got)
				}
				b.picture(fmt.Sprintf("cluster-%s-%d-%s", name, width, colours))
			}
		}
	}
	b.open("")
	c.kubectl("", "delete", "service", "web")
	b.waitFor("the rule goes", rows+" === ''")
}
