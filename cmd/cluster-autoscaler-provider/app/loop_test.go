package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"

	"kaz/internal/arm"
	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/retail"
	"kaz/internal/localazure/server"
)

// driven is a running provider that a client drives over mutual TLS, with the calls of one loop of cluster-autoscaler in their
// order. The client is not cluster-autoscaler: the Go module proxy does not serve that. Each pod needs a node of its own.
type driven struct {
	t       *testing.T
	local   *server.Server
	azure   *arm.Client
	args    []string
	address string
	ca      *authority

	command *exec.Cmd
	log     bytes.Buffer
	client  externalgrpc.CloudProviderClient

	groups  []string // in the order of an expander's priorities
	pods    int
	refused map[string]string // the errors of groups that are not asked any more
	prices  map[string]float64
}

// drive starts a local Azure with three empty scale sets, of which the last has Spot machines, and a provider.
func drive(t *testing.T) *driven {
	t.Helper()
	// A request takes a fiftieth of its time in Azure, so that operations can be interrupted.
	local, config := serveAzure(t, server.Options{Latency: "0.02"}, 3, 0)
	client, err := local.Client()
	if err != nil {
		t.Fatal(err)
	}
	ca := newAuthority(t, "ca")
	ca.issue("server", ca)
	d := &driven{t: t, local: local, azure: client, ca: ca, address: freeAddress(t)}
	d.makeSpot("nodes2")
	d.args = []string{
		"--cloud-config=" + config, "--address=" + d.address, "--metrics-address=", "--refresh=1s",
		"--nodes=0:5:nodes0", "--nodes=0:5:nodes1", "--nodes=0:5:nodes2", "--prices=" + local.Info().ARM + retail.Path,
		"--cert=" + ca.path("server.crt"), "--key-cert=" + ca.path("server.key"), "--ca-cert=" + ca.path("ca.crt"),
	}
	d.start()
	t.Cleanup(func() { d.stop(syscall.SIGTERM) })
	return d
}

// start starts the provider and makes the calls of a client that starts: the groups and their nodes, before any Refresh.
func (d *driven) start() {
	d.t.Helper()
	d.log.Reset()
	d.command = program(context.WithoutCancel(d.t.Context()), d.local, d.args...)
	d.command.Stderr = &d.log
	if err := d.command.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.client = d.ca.dial(d.address, d.ca)
	eventually(d.t, func() error {
		r, err := d.client.NodeGroups(d.t.Context(), &externalgrpc.NodeGroupsRequest{})
		for _, g := range r.GetNodeGroups() {
			if err == nil {
				_, err = d.client.NodeGroupNodes(d.t.Context(), &externalgrpc.NodeGroupNodesRequest{Id: g.Id})
			}
		}
		return err
	})
}

// stop ends the provider. It must end well if it is asked to.
func (d *driven) stop(signal syscall.Signal) {
	d.t.Helper()
	if d.command == nil {
		return
	}
	err := errors.Join(d.command.Process.Signal(signal), d.command.Wait())
	if err != nil && signal == syscall.SIGTERM {
		d.t.Errorf("%v: %s", err, d.log.String())
	}
	d.command = nil
}

func (d *driven) set(name string) azure.ID {
	return azure.GroupID(d.local.Info().Subscription, "kaz").Resource(compute.ScaleSets, name)
}

// makeSpot writes a scale set with the priority Spot, which a PATCH cannot change.
func (d *driven) makeSpot(name string) {
	d.t.Helper()
	text, err := d.azure.Get(d.t.Context(), d.set(name))
	if err != nil {
		d.t.Fatal(err)
	}
	body := bytes.Replace(text, []byte(`"virtualMachineProfile":{`),
		[]byte(`"virtualMachineProfile":{"priority":"Spot","evictionPolicy":"Delete",`), 1)
	if _, err = azure.Do(d.t.Context(), d.azure, azure.Request{Verb: azure.Put, ID: d.set(name), Body: body}); err != nil {
		d.t.Fatal(err)
	}
}

// capacity returns the capacity of a scale set in Azure.
func (d *driven) capacity(name string) int {
	d.t.Helper()
	doc, err := d.azure.Get(d.t.Context(), d.set(name))
	if err != nil {
		d.t.Fatal(err)
	}
	set, err := azure.Decode[compute.ScaleSetModel](doc)
	if err != nil {
		d.t.Fatal(err)
	}
	return int(*set.SKU.Capacity)
}

// loop makes the calls of one loop, and returns how many nodes run in each group. A loop whose Refresh fails ends at once.
func (d *driven) loop() map[string]int {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 5*time.Second) // as cluster-autoscaler's grpc_timeout
	defer cancel()
	running := map[string]int{}
	if _, err := d.client.Refresh(ctx, &externalgrpc.RefreshRequest{}); err != nil {
		return running
	}
	groups, err := d.client.NodeGroups(ctx, &externalgrpc.NodeGroupsRequest{})
	d.good("NodeGroups", err)
	target, nodes, wanted := map[string]int{}, map[string][]string{}, 0
	for _, g := range groups.GetNodeGroups() {
		nodes[g.Id] = d.nodes(ctx, g.Id)
		running[g.Id] = len(nodes[g.Id])
		d.describe(ctx, g.Id)
		size, err := d.client.NodeGroupTargetSize(ctx, &externalgrpc.NodeGroupTargetSizeRequest{Id: g.Id})
		d.good("NodeGroupTargetSize", err)
		target[g.Id] = int(size.GetTargetSize())
		wanted += target[g.Id]
		if target[g.Id] > int(g.MaxSize) {
			d.t.Errorf("%s: the target %d is above the greatest size %d", g.Id, target[g.Id], g.MaxSize)
		}
	}
	d.scaleUp(ctx, d.pods-wanted)
	d.scaleDown(ctx, wanted-d.pods, nodes)
	return running
}

func (d *driven) good(call string, err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("%s: %v", call, err)
	}
}

// nodes returns the provider ids of a group's running machines, which are nodes at once. An instance with an error has the group
// backed off, and is deleted.
func (d *driven) nodes(ctx context.Context, group string) (running []string) {
	d.t.Helper()
	r, err := d.client.NodeGroupNodes(ctx, &externalgrpc.NodeGroupNodesRequest{Id: group})
	d.good("NodeGroupNodes", err)
	for _, i := range r.GetInstances() {
		node := &externalgrpc.ExternalGrpcNode{ProviderID: i.Id, Name: i.Id[strings.LastIndexByte(i.Id, '/')+1:]}
		switch {
		case i.GetStatus().GetErrorInfo().GetErrorCode() != "":
			d.refused[group] = i.Status.ErrorInfo.ErrorCode
			node.Annotations = map[string]string{"k8s.io/cluster-autoscaler/fake-node-reason": "create-error"}
			d.delete(ctx, group, node)
		case i.GetStatus().GetInstanceState() == externalgrpc.InstanceStatus_instanceRunning:
			of, err := d.client.NodeGroupForNode(ctx, &externalgrpc.NodeGroupForNodeRequest{Node: node})
			d.good("NodeGroupForNode", err)
			if of.GetNodeGroup().GetId() != group {
				d.t.Errorf("the group of %s is %q, want %s", i.Id, of.GetNodeGroup().GetId(), group)
			}
			running = append(running, i.Id)
		}
	}
	return running
}

func (d *driven) delete(ctx context.Context, group string, node *externalgrpc.ExternalGrpcNode) {
	d.t.Helper()
	_, err := d.client.NodeGroupDeleteNodes(ctx, &externalgrpc.NodeGroupDeleteNodesRequest{
		Id: group, Nodes: []*externalgrpc.ExternalGrpcNode{node},
	})
	d.good("NodeGroupDeleteNodes", err)
}

// describe makes the calls whose answers an expander and the choice of unneeded nodes need.
func (d *driven) describe(ctx context.Context, group string) {
	d.t.Helper()
	_, err := d.client.NodeGroupGetOptions(ctx, &externalgrpc.NodeGroupAutoscalingOptionsRequest{Id: group,
		Defaults: &externalgrpc.NodeGroupAutoscalingOptions{ScaleDownUnneededDuration: durationpb.New(10 * time.Minute)}})
	if status.Code(err) != codes.Unimplemented { // the scale sets have no such tags
		d.t.Errorf("NodeGroupGetOptions: %v", err)
	}
	template, err := d.client.NodeGroupTemplateNodeInfo(ctx, &externalgrpc.NodeGroupTemplateNodeInfoRequest{Id: group})
	d.good("NodeGroupTemplateNodeInfo", err)
	var node corev1.Node
	d.good("the template", node.Unmarshal(template.GetNodeBytes()))
	if node.Status.Allocatable.Cpu().IsZero() {
		d.t.Errorf("%s: the template has no CPUs", group)
	}
	now := time.Now()
	price, err := d.client.PricingNodePrice(ctx, &externalgrpc.PricingNodePriceRequest{
		Node:           &externalgrpc.ExternalGrpcNode{Name: node.Name, Labels: node.Labels},
		StartTimestamp: timestamppb.New(now), EndTimestamp: timestamppb.New(now.Add(time.Hour)),
	})
	switch status.Code(err) {
	case codes.OK:
		d.prices[group] = price.GetPrice()
	case codes.Unimplemented: // not yet read
	default:
		d.t.Errorf("PricingNodePrice: %v", err)
	}
}

// scaleUp asks the first group that is not backed off.
func (d *driven) scaleUp(ctx context.Context, missing int) {
	d.t.Helper()
	for _, group := range d.groups {
		if missing <= 0 || d.refused[group] != "" {
			continue
		}
		_, err := d.client.NodeGroupIncreaseSize(ctx, &externalgrpc.NodeGroupIncreaseSizeRequest{Id: group, Delta: int32(missing)})
		d.good("NodeGroupIncreaseSize", err)
		return
	}
}

// scaleDown deletes nodes that no pod needs, with one call for each.
func (d *driven) scaleDown(ctx context.Context, surplus int, nodes map[string][]string) {
	d.t.Helper()
	for group, ids := range nodes {
		for _, id := range ids {
			if surplus--; surplus < 0 {
				return
			}
			d.delete(ctx, group, &externalgrpc.ExternalGrpcNode{ProviderID: id, Name: id[strings.LastIndexByte(id, '/')+1:]})
		}
	}
}

// until makes loops until the groups have so many running nodes each.
func (d *driven) until(what string, want map[string]int) {
	d.t.Helper()
	d.untilTrue(what, func() error {
		have := d.loop()
		for _, group := range []string{"nodes0", "nodes1", "nodes2"} {
			if have[group] != want[group] {
				return fmt.Errorf("running %v, want %v", have, want)
			}
		}
		return nil
	})
	for _, group := range []string{"nodes0", "nodes1", "nodes2"} {
		if have := d.capacity(group); have != want[group] {
			d.t.Errorf("%s: the capacity of %s is %d in Azure, want %d", what, group, have, want[group])
		}
	}
}

func (d *driven) untilTrue(what string, do func() error) {
	d.t.Helper()
	const often = 250 * time.Millisecond
	limit := time.After(3 * time.Minute)
	began := time.Now()
	for {
		err := do()
		if err == nil {
			d.t.Logf("%s: after %v", what, time.Since(began).Round(time.Second/10))
			return
		}
		select {
		case <-limit:
			d.t.Fatalf("%s: %v; the provider logs: %s", what, err, d.log.String())
		case <-time.After(often):
		}
	}
}

// TestLoopOfProgram has a loop of cluster-autoscaler scale the groups of a running provider through what goes wrong in them. Each
// step begins with what the one before left.
func TestLoopOfProgram(t *testing.T) {
	t.Parallel()
	d := drive(t)
	d.refused, d.prices, d.groups = map[string]string{}, map[string]float64{}, []string{"nodes0", "nodes1"}
	d.pods = 2
	d.until("from zero", map[string]int{"nodes0": 2})

	d.pods = 4
	d.loop()
	d.untilTrue("the request is with Azure", func() error {
		if have := d.capacity("nodes0"); have != 4 {
			return fmt.Errorf("capacity %d", have)
		}
		return nil
	})
	d.stop(syscall.SIGKILL)
	d.start()
	d.until("the provider is killed while machines are made", map[string]int{"nodes0": 4})

	rule := core.Fault{
		Method: "PATCH", Type: compute.ScaleSets, Name: "nodes0", Times: 1,
		Fault: "operation", Code: "AllocationFailed", Message: "Allocation failed.",
	}
	if err := d.local.Emulator().SetFaults([]core.Fault{rule}); err != nil {
		t.Fatal(err)
	}
	d.pods = 5
	d.until("a failed group, then the second one", map[string]int{"nodes0": 4, "nodes1": 1})
	if d.refused["nodes0"] != "AllocationFailed" {
		t.Errorf("errors of groups: %v", d.refused)
	}

	d.groups, d.pods = []string{"nodes2"}, 7
	d.until("Spot machines", map[string]int{"nodes0": 4, "nodes1": 1, "nodes2": 2})
	before := d.machines("nodes2")
	evicted := d.set("nodes2").Child("virtualMachines", before[0])
	if _, err := azure.Do(t.Context(), d.azure, azure.Request{Verb: azure.Post, ID: evicted, Action: "simulateEviction"}); err != nil {
		t.Fatal(err)
	}
	d.untilTrue("another machine comes for one that is evicted", func() error {
		d.loop()
		if now := d.machines("nodes2"); len(now) != 2 || strings.Join(now, " ") == strings.Join(before, " ") {
			return fmt.Errorf("machines %v, before %v", now, before)
		}
		return nil
	})
	d.until("after the eviction", map[string]int{"nodes0": 4, "nodes1": 1, "nodes2": 2})
	if d.prices["nodes2"] == 0 || d.prices["nodes2"] >= d.prices["nodes0"] {
		t.Errorf("prices %v: want those of Spot machines below those on demand", d.prices)
	}

	d.pods = 0
	d.until("down to zero", map[string]int{})
	if _, err := d.client.Cleanup(t.Context(), &externalgrpc.CleanupRequest{}); err != nil {
		t.Error(err)
	}
}

// machines returns the instance ids of a scale set in Azure.
func (d *driven) machines(set string) (ids []string) {
	d.t.Helper()
	docs, err := d.azure.List(d.t.Context(), azure.Query{Scope: d.set(set), Type: compute.ScaleSetInstances})
	if err != nil {
		d.t.Fatal(err)
	}
	for _, doc := range docs {
		var machine struct{ InstanceID string }
		if err := json.Unmarshal(doc, &machine); err != nil {
			d.t.Fatal(err)
		}
		ids = append(ids, machine.InstanceID)
	}
	return ids
}
