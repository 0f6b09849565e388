package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
)

// TestFleet has thirty nodes in three scale sets, two standalone machines and one in another resource
// group. They join, grow, shrink, are deleted and stopped. During each step the controller and the
// node manager are killed.
func TestFleet(t *testing.T) {
	c := startUp(t, newDir(t), "--nodes", "30", "--scale-sets", "3", "--throttle", "azure",
		"--without", "cloud-controller-manager", "--without", "cloud-node-manager")
	f := &fleet{c: c, log: c.requestLog()}
	const elsewhere = "elsewhere"
	f.addMachine(c.group(), "gateway", "2")
	f.addMachine(c.group(), "bastion", "")
	f.addMachine(azure.GroupID(c.status.Subscription, elsewhere), "far", "3")
	for _, step := range []struct {
		name string
		test func(*fleet)
	}{
		{"all are new", (*fleet).appear},
		{"scale sets grow", (*fleet).grow},
		{"machines go and stop, and Azure throttles", (*fleet).shrink},
		{"machines come back", (*fleet).comeBack},
	} {
		began := time.Now()
		if !t.Run(step.name, func(t *testing.T) { step.test(f.in(t)) }) {
			return
		}
		f.c = c
		t.Logf("%s: %s", step.name, short(time.Since(began)))
	}
	if far, _ := c.node("far"); far.Labels["kubernetes.azure.com/resource-group"] != elsewhere {
		t.Errorf("the node of the other group has the labels %v", far.Labels)
	}
	f.stop()
	c.stop(syscall.SIGTERM)
}

// fleet is a cluster with programs for its nodes that can be killed.
type fleet struct {
	c        *cluster
	log      requestLog
	programs []*program
	off      []string // nodes of stopped machines
	// unjudged is set if no controller removes the not-ready taint of new nodes.
	unjudged bool
}

// in is the fleet for a subtest. The programs that this leaves behind are the next one's.
func (f *fleet) in(t *testing.T) *fleet {
	f.c = f.c.in(t)
	return f
}

// fleetWithin is a timeout for a busy machine. Nodes of stopped machines become NotReady after their
// lease of 20 s.
const fleetWithin = 3 * time.Minute

// start runs the controller and the node manager as kaz local up does.
func (f *fleet) start(t *testing.T) {
	f.programs = nil
	for name, arguments := range map[string][]string{
		"cloud-controller-manager": {
			"--cloud-config=" + f.c.status.CloudConfig, "--cluster-name=kaz", "--controllers=*,-cloud-node", "--leader-elect=false",
			"--secure-port=0", "--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/14", "--service-cluster-ip-range=10.96.0.0/16",
			"--configure-cloud-routes=true",
		},
		"cloud-node-manager": {"--node-list=" + filepath.Join(f.c.dir, "nodes.list")},
	} {
		script := `. "$1" && shift && exec "$@" --kubeconfig="$KUBECONFIG"`
		command := append([]string{"-c", script, "bash", f.c.status.Environment, filepath.Join(programs, name)}, arguments...)
		f.programs = append(f.programs, start(t, exec.Command("/bin/bash", command...)))
	}
}

// restart kills the programs during a step and starts them again.
func (f *fleet) restart(t *testing.T, what string, begun func() bool) {
	t.Helper()
	took := wait(t, fleetWithin, what, func() string {
		for _, p := range f.programs {
			select {
			case <-p.ended:
				t.Fatalf("%s ended by itself: %v\n%s", p.cmd, p.err, p.out)
			default:
			}
		}
		if begun() {
			return ""
		}
		return "not yet"
	})
	for _, p := range f.programs {
		p.signal(syscall.SIGKILL)
	}
	for _, p := range f.programs {
		if err := p.end(time.Minute); err == nil {
			t.Errorf("%s was killed and ended well", p.cmd)
		}
	}
	t.Logf("%s after %s: killed", what, short(took))
	f.start(f.c.up.t)
}

func (f *fleet) stop() {
	for _, p := range f.programs {
		stopped(f.c.t, p, syscall.SIGTERM)
	}
}

// addMachine makes a virtual machine that belongs to no scale set, in a zone or none.
func (f *fleet) addMachine(group azure.ID, name, zone string) {
	c, location := f.c, "westeurope"
	c.t.Helper()
	if !group.Equal(c.group()) {
		c.put(group, map[string]any{"location": location})
	}
	subnet := c.group().Resource("Microsoft.Network/virtualNetworks", "kaz-vnet").Child("subnets", "nodes")
	nic := group.Resource(network.Interfaces, name)
	c.put(nic, map[string]any{"location": location, "properties": map[string]any{
		"enableIPForwarding": true,
		"ipConfigurations": []any{map[string]any{"name": "ipconfig", "properties": map[string]any{
			"subnet": map[string]any{"id": subnet}, "primary": true,
		}}},
	}})
	vm := map[string]any{"location": location, "properties": map[string]any{
		"hardwareProfile": map[string]any{"vmSize": "Standard_D2s_v5"},
		"osProfile": map[string]any{
			"computerName": name, "adminUsername": "kaz", "linuxConfiguration": map[string]any{"disablePasswordAuthentication": true},
		},
		"storageProfile": map[string]any{
			"osDisk": map[string]any{"createOption": "FromImage",
				"managedDisk": map[string]any{"storageAccountType": "Premium_LRS"}},
			"imageReference": map[string]any{"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
		},
		"networkProfile": map[string]any{"networkInterfaces": []any{map[string]any{"id": nic,
			"properties": map[string]any{"primary": true}}}},
	}}
	if zone != "" {
		vm["zones"] = []any{zone}
	}
	c.put(group.Resource(compute.VirtualMachines, name), vm)
}

// host is a machine in Azure, for comparison with its node.
type host struct {
	id   azure.ID
	zone string // of the node's label: a fault domain where the machine is in no zone
}

// hosts are all machines that there are, by the names of their nodes.
func (f *fleet) hosts() map[string]host {
	c := f.c
	c.t.Helper()
	all := map[string]host{}
	list := func(scope azure.ID, kind string) {
		docs, err := c.azure.List(c.t.Context(), azure.Query{Scope: scope, Type: kind})
		if err != nil {
			c.t.Fatal(err)
		}
		for _, d := range docs {
			vm, err := azure.Decode[compute.Instance](d)
			if err != nil {
				c.t.Fatal(err)
			}
			h := host{vm.ID, "0"}
			if len(vm.Zones) > 0 {
				h.zone = "westeurope-" + vm.Zones[0]
			}
			all[nodeOf(vm)] = h
		}
	}
	for _, set := range c.scaleSets() {
		list(set, compute.ScaleSetInstances)
	}
	list(azure.SubscriptionID(c.status.Subscription), compute.VirtualMachines)
	return all
}

// inStep waits until nodes and machines match, and the routes lead to all of them.
func (f *fleet) inStep(machines int) {
	f.c.t.Helper()
	hosts := f.hosts()
	if len(hosts) != machines {
		f.c.t.Fatalf("Azure has %d machines, want %d: %v", len(hosts), machines, slices.Sorted(maps.Keys(hosts)))
	}
	took := wait(f.c.t, fleetWithin, "nodes in step with their machines", func() string {
		nodes := f.c.nodes()
		for _, n := range nodes {
			if wrong := f.differs(n, hosts); wrong != "" {
				return n.Name + ": " + wrong
			}
		}
		if len(nodes) != len(hosts) {
			return fmt.Sprintf("%d nodes for %d machines", len(nodes), len(hosts))
		}
		return ""
	})
	f.c.t.Logf("%d nodes in step with their machines %s later", machines, short(took))
	f.c.routed()
}

// differs returns a difference between a node and its machine.
func (f *fleet) differs(n corev1.Node, hosts map[string]host) string {
	const key = "node.cloudprovider.kubernetes.io/shutdown"
	h, ok := hosts[n.Name]
	off := slices.Contains(f.off, n.Name)
	taints := slices.DeleteFunc(slices.Clone(n.Spec.Taints),
		func(t corev1.Taint) bool { return f.unjudged && t.Key == corev1.TaintNodeNotReady })
	switch {
	case !ok:
		return "it has no machine"
	case n.Spec.ProviderID == "" || !azure.ID(strings.TrimPrefix(n.Spec.ProviderID, "azure://")).Equal(h.id):
		return fmt.Sprintf("provider id %q, its machine is %s", n.Spec.ProviderID, h.id)
	case n.Labels[corev1.LabelTopologyZone] != h.zone || n.Labels[corev1.LabelTopologyRegion] != "westeurope":
		return fmt.Sprintf("labels %v, its machine is in %s", n.Labels, h.zone)
	case off && (!taint(n, key) || condition(n, corev1.NodeReady) == corev1.ConditionTrue):
		return fmt.Sprintf("its machine is off; conditions %v, taints %v", n.Status.Conditions, n.Spec.Taints)
	case !off && (len(taints) > 0 || condition(n, corev1.NodeReady) != corev1.ConditionTrue):
		return fmt.Sprintf("its machine runs; conditions %v, taints %v", n.Status.Conditions, n.Spec.Taints)
	}
	return ""
}

// appear creates all machines, and kills the programs after the first nodes were initialized.
func (f *fleet) appear() {
	f.start(f.c.up.t)
	f.restart(f.c.t, "a node got its provider id", func() bool {
		return slices.ContainsFunc(f.c.nodes(), func(n corev1.Node) bool { return n.Spec.ProviderID != "" })
	})
	f.inStep(33)
}

// grow: two scale sets get larger at once.
func (f *fleet) grow() {
	sets := f.c.scaleSets()
	f.scale(sets[0], 14)
	f.scale(sets[2], 12)
	f.restart(f.c.t, "a new node got a range of pod addresses", func() bool {
		n, _ := f.c.node("nodes0-00000a")
		return n.Spec.PodCIDR != ""
	})
	f.inStep(39)
}

func (f *fleet) scale(set azure.ID, to int) {
	f.c.t.Helper()
	body := azure.Document(fmt.Sprintf(`{"sku":{"capacity":%d}}`, to))
	if _, err := f.c.azure.Patch(f.c.t.Context(), azure.Write{ID: set, Body: body}); err != nil {
		f.c.t.Fatal(err)
	}
}

// shrink makes a scale set smaller, deletes an instance of another one and a standalone machine, and
// stops two machines. Meanwhile another client causes throttling.
func (f *fleet) shrink() {
	c, sets := f.c, f.c.scaleSets()
	gone := sets[2].Child("virtualMachines", "3")
	bastion, gateway := f.alone("bastion"), f.alone("gateway")
	off := sets[0].Child("virtualMachines", "2")
	release := f.crowd(gone, bastion, off, gateway)
	defer release()
	f.scale(sets[1], 8)
	c.delete(gone)
	c.delete(bastion)
	c.post(off, "deallocate")
	c.post(gateway, "deallocate")
	f.off = []string{"nodes0-000002", "gateway"}
	f.restart(c.t, "the controller was throttled", f.throttled)
	release()
	f.inStep(35)
}

func (f *fleet) alone(name string) azure.ID {
	return f.c.group().Resource(compute.VirtualMachines, name)
}

// comeBack: the machines that were stopped are started.
func (f *fleet) comeBack() {
	f.c.post(f.c.scaleSets()[0].Child("virtualMachines", "2"), "start")
	f.c.post(f.alone("gateway"), "start")
	f.off = nil
	f.restart(f.c.t, "a node that was off is ready", func() bool {
		n, _ := f.c.node("gateway")
		return condition(n, corev1.NodeReady) == corev1.ConditionTrue
	})
	f.inStep(35)
}

func (c *cluster) delete(id azure.ID) {
	c.t.Helper()
	if err := c.azure.Delete(c.t.Context(), id); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) post(id azure.ID, action string) {
	c.t.Helper()
	if _, err := c.azure.Post(c.t.Context(), id, action, nil); err != nil {
		c.t.Fatal(err)
	}
}

// crowd reads machines and their lists until release is called, because Azure throttles all clients
// together.
func (f *fleet) crowd(machines ...azure.ID) (release func()) {
	c := f.c
	c.t.Helper()
	var info struct{ ARMHTTP, Token string }
	if err := json.Unmarshal(readFile(c.t, filepath.Join(c.dir, "azure-state-running.json")), &info); err != nil {
		c.t.Fatal(err)
	}
	const version = "?api-version=2024-07-01"
	urls := map[string]bool{}
	for _, m := range machines {
		urls[info.ARMHTTP+string(m)+"/instanceView"+version] = true
		urls[info.ARMHTTP+string(m[:strings.LastIndexByte(string(m), '/')])+version] = true
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	var asking sync.WaitGroup
	for url := range urls {
		asking.Go(func() {
			for ctx.Err() == nil {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err != nil {
					c.t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+info.Token)
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					continue // released
				}
				_, _ = io.Copy(io.Discard, answer.Body) // for the next one on this connection
				answer.Body.Close()
				if answer.StatusCode == http.StatusTooManyRequests {
					// Sooner again than Azure asks for, but not all the time.
					select {
					case <-ctx.Done():
					case <-time.After(100 * time.Millisecond):
					}
				}
			}
		})
	}
	return func() { cancel(); asking.Wait() }
}

// throttled reports whether Azure refused the controller a request since the beginning.
func (f *fleet) throttled() bool {
	for line := range bytes.Lines(readFile(f.c.t, f.log.file)[f.log.from:]) {
		var r request
		if !bytes.HasSuffix(line, []byte("\n")) {
			continue // is being written
		}
		if err := json.Unmarshal(line, &r); err != nil {
			f.c.t.Fatalf("%s: %v: %q", f.log.file, err, line)
		}
		if r.Status == http.StatusTooManyRequests && strings.HasPrefix(r.UserAgent, "kubernetes-cloudprovider/") {
			return true
		}
	}
	return false
}
