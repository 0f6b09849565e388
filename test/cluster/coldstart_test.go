package cluster_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

var largeFleet = flag.Int("fleet", 500, "number of nodes of the cluster for the measured cold start")

// TestColdStart counts the Azure requests of a cloud-controller-manager that starts. It does so for a cluster with new nodes
// and routes, and for a large cluster with one new node.
func TestColdStart(t *testing.T) {
	const nodes, sets = 30, 3
	c := startUp(t, newDir(t), "--nodes", strconv.Itoa(nodes), "--scale-sets", strconv.Itoa(sets), "--throttle", "azure",
		"--without", "cloud-controller-manager", "--without", "cloud-node-manager",
		// kube-controller-manager would taint nodes without a kubelet.
		"--without", "kube-controller-manager", "--without", "kube-scheduler")
	f := &fleet{c: c, unjudged: true}
	wait(t, fleetWithin, "a node for each machine", func() string {
		if got := len(c.nodes()); got != nodes {
			return fmt.Sprintf("%d nodes", got)
		}
		return ""
	})
	log := c.requestLog()
	// The routes are listed more often than every 10 s, which must not cause more reads of the table.
	manager := f.coldStart("--route-reconciliation-period=3s", "--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/14",
		"--configure-cloud-routes=true")
	f.inStep(nodes)
	began := calls(t, log)
	t.Logf("%d new nodes in %d scale sets, with routes: everything in step after %s; %v", nodes, sets,
		short(time.Since(manager.began)), began)
	// On a slow machine, the pod CIDRs and so the routes arrive in more than two writes.
	const elsewhere, mostTables = 1 + 2*sets, 6
	if began.others > elsewhere || began.tables > began.tableWrites+1 || began.tableWrites > mostTables ||
		began.writes > began.tableWrites || began.discoveries != 1 {
		t.Errorf("want one question about the cloud, %d reads of anything else, and one of the route table more than writes:\n%s",
			elsewhere, began.text())
	}
	stopped(t, manager, syscall.SIGTERM)

	const each = 100
	large := (*largeFleet + each - 1) / each
	f.addAtWork(large, each)
	f.scale(c.scaleSets()[0], nodes/sets+1)
	wait(t, fleetWithin, "the node of a new machine", func() string {
		if _, there := c.node("nodes0-00000a"); there {
			return ""
		}
		return "it is not there"
	})
	log = c.requestLog()
	manager = f.coldStart("--allocate-node-cidrs=false", "--configure-cloud-routes=false")
	took := wait(t, fleetWithin, "the new node among them is looked after", func() string {
		n, _ := c.node("nodes0-00000a")
		return f.differs(n,
			map[string]host{n.Name: {c.scaleSets()[0].Child("virtualMachines", "10"), n.Labels["topology.kubernetes.io/zone"]}})
	})
	began = calls(t, log)
	memory := peak(t, manager)
	t.Logf("%d nodes in %d scale sets, at work but for one: that one looked after %s after the start; %v; at most %d MB resident",
		large*each+nodes+1, large+sets, short(took), began, memory>>20)
	const mostMemory = 250 << 20
	if most := 5 + 2*(large+sets); began.others+began.writes > most || began.discoveries != 1 || took > time.Minute || memory > mostMemory {
		t.Errorf("want at most %d calls, a minute and %d MB; calls:\n%s", most, mostMemory>>20, began.text())
	}
	stopped(t, manager, syscall.SIGTERM)
	c.stop(syscall.SIGTERM)
}

// asked counts Azure requests, without tokens and polls.
type asked struct {
	all []string
	// others are reads other than of route tables and of the controller's own rights.
	others, rights, tables, tableWrites, writes int
	// discoveries are unauthenticated requests about the cloud.
	discoveries int
}

func (a asked) String() string {
	return fmt.Sprintf("%d question about the cloud, %d calls: %d reads and %d writes of route tables, %d about rights, %d other "+
		"reads and %d other writes",
		a.discoveries, len(a.all), a.tables, a.tableWrites, a.rights, a.others, a.writes-a.tableWrites)
}

func (a asked) text() string { return strings.Join(a.all, "\n") }

func calls(t *testing.T, log requestLog) asked {
	t.Helper()
	var a asked
	reads, writes := log.since(t)
	for _, r := range reads {
		switch {
		case strings.Contains(r, "/operations/"):
			continue
		case strings.Contains(r, "/routeTables/"):
			a.tables++
		case strings.HasSuffix(r, "/permissions"):
			a.rights++
		default:
			a.others++
		}
		a.all = append(a.all, r)
	}
	for _, w := range writes {
		if strings.Contains(w, "/routeTables/") {
			a.tableWrites++
		}
	}
	a.writes = len(writes)
	a.discoveries = strings.Count(string(readFile(t, log.file)[log.from:]), `"/metadata/endpoints"`)
	a.all = append(a.all, writes...)
	return a
}

// coldStart runs only a cloud-controller-manager, which also initializes new nodes.
func (f *fleet) coldStart(arguments ...string) *program {
	script := `. "$1" && shift && exec "$@" --kubeconfig="$KUBECONFIG"`
	command := append([]string{
		"-c", script, "bash", f.c.status.Environment, filepath.Join(programs, "cloud-controller-manager"),
		"--cloud-config=" + f.c.status.CloudConfig, "--cluster-name=kaz", "--leader-elect=false", "--secure-port=0",
	}, arguments...)
	return start(f.c.t, exec.Command("/bin/bash", command...))
}

// peak returns a program's maximum resident memory in bytes.
func peak(t *testing.T, p *program) int {
	t.Helper()
	for line := range strings.Lines(string(readFile(t, fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)))) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return kilobytes << 10
		}
	}
	t.Fatal("the kernel does not say how much memory the program has")
	return 0
}

// addAtWork creates scale sets with nodes that are ready and initialized.
func (f *fleet) addAtWork(sets, each int) {
	c, began := f.c, time.Now()
	c.t.Helper()
	post := c.poster()
	var posting sync.WaitGroup
	for s := range sets {
		set := c.group().Resource(compute.ScaleSets, fmt.Sprintf("np%d", s))
		posting.Go(func() {
			for i := range each {
				post("/api/v1/nodes", nodeAtWork(set, i))
			}
		})
	}
	posting.Wait()
	var model struct {
		SKU        map[string]any `json:"sku"`
		Location   string         `json:"location"`
		Zones      []string       `json:"zones"`
		Properties map[string]any `json:"properties"`
	}
	doc, err := c.azure.Get(c.t.Context(), c.scaleSet())
	if err == nil {
		err = json.Unmarshal(doc, &model)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	for s := range sets {
		name := fmt.Sprintf("np%d", s)
		model.SKU["capacity"] = each
		profile, _ := model.Properties["virtualMachineProfile"].(map[string]any)
		os, _ := profile["osProfile"].(map[string]any)
		os["computerNamePrefix"] = name + "-"
		c.put(c.group().Resource(compute.ScaleSets, name), model)
	}
	c.t.Logf("%d nodes and their machines made in %s", sets*each, short(time.Since(began)))
}

// nodeAtWork is the node of an instance.
func nodeAtWork(set azure.ID, i int) map[string]any {
	number := strconv.FormatInt(int64(i), 36)
	name := set.Name() + "-" + strings.Repeat("0", 6-len(number)) + number
	zone := fmt.Sprintf("westeurope-%d", 1+i%3)
	now := time.Now().UTC().Format(time.RFC3339)
	condition := func(kind, status string) map[string]any {
		return map[string]any{"type": kind, "status": status, "reason": "AtWork", "lastHeartbeatTime": now, "lastTransitionTime": now}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": map[string]string{
			"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
			"node.kubernetes.io/instance-type": "Standard_D2s_v5", "beta.kubernetes.io/instance-type": "Standard_D2s_v5",
			"topology.kubernetes.io/region": "westeurope", "failure-domain.beta.kubernetes.io/region": "westeurope",
			"topology.kubernetes.io/zone": zone, "failure-domain.beta.kubernetes.io/zone": zone,
		}},
		"spec": map[string]any{"providerID": "azure://" + string(set.Child("virtualMachines", strconv.Itoa(i)))},
		"status": map[string]any{
			"addresses": []any{map[string]any{"type": "InternalIP", "address": fmt.Sprintf("10.241.%d.%d", i/250, 1+i%250)},
				map[string]any{"type": "Hostname", "address": name}},
			"conditions": []any{condition("Ready", "True"), condition("NetworkUnavailable", "False")},
		},
	}
}

// poster returns a function that sends objects to the API server, much faster than kubectl.
func (c *cluster) poster() func(path string, object any) {
	c.t.Helper()
	var config struct {
		Clusters []struct {
			Cluster struct {
				Server string `json:"server"`
				CA     []byte `json:"certificate-authority-data"`
			} `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User struct {
				Certificate []byte `json:"client-certificate-data"`
				Key         []byte `json:"client-key-data"`
			} `json:"user"`
		} `json:"users"`
	}
	if err := yaml.Unmarshal(readFile(c.t, c.status.Kubeconfig), &config); err != nil {
		c.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(config.Users[0].User.Certificate, config.Users[0].User.Key)
	if err != nil {
		c.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.Clusters[0].Cluster.CA)
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
	}
	c.t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	return func(path string, object any) {
		text, err := json.Marshal(object)
		if err != nil {
			c.t.Error(err)
			return
		}
		r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, config.Clusters[0].Cluster.Server+path, bytes.NewReader(text))
		if err != nil {
			c.t.Error(err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil {
			c.t.Error(err)
			return
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusCreated {
			c.t.Errorf("POST %s: %s", path, answer.Status)
		}
	}
}
