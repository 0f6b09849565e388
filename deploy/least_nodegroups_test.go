package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/autoscale"
	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/testkit"
)

// groupStories are uses of Azure by the cluster-autoscaler-provider.
func groupStories() []story {
	const set = computeActions + "virtualMachineScaleSets/"
	return []story{
		{name: "a group grows and shrinks", tell: (*cluster).scaleUniform,
			needs:   []string{set + "read", set + "write", set + "delete/action", instanceOf + "read"},
			without: []string{computeActions + "skus/read", computeActions + "locations/usages/read"}},
		{name: "a Flexible group", tell: (*cluster).scaleFlexible, needs: []string{computeActions + "virtualMachines/read"}},
		{name: "machines that are switched off", tell: (*cluster).scaleDeallocated,
			needs: []string{set + "deallocate/action", set + "start/action"}},
	}
}

// TestLeastPrivilegeOfNodeGroups checks that every story of the cluster-autoscaler-provider succeeds with exactly its
// roles, and that each action is necessary.
func TestLeastPrivilegeOfNodeGroups(t *testing.T) {
	const role = "cluster-autoscaler-provider"
	state := layNodeGroups(t)
	taken := checkStories(t, groupStories(), func(t *testing.T, without string) *cluster { return openCluster(t, state, role, without) })
	for _, a := range roleActions(role) {
		if !taken[a] {
			t.Errorf("role %s: action %s is not needed by any story", role, a)
		}
	}
}

// layNodeGroups creates a cluster with scale sets and returns its state file.
func layNodeGroups(t *testing.T) string {
	t.Helper()
	a := testkit.NewAzure(t, core.Options{}, 2)
	a.AddScaleSet("flexible", testkit.Flexible, 2)
	off := a.AddScaleSet("off", testkit.Uniform, 2)
	tags := azure.Document(`{"tags":{"k8s.io_cluster-autoscaler_node-template_autoscaling-options_scaledownmode":"deallocate"}}`)
	if _, err := azure.Do(t.Context(), a.Client, azure.Request{Verb: azure.Patch, ID: off, Body: tags}); err != nil {
		t.Fatal(err)
	}
	return save(t, a)
}

func (c *cluster) scaleUniform() error     { return c.scale(testkit.ScaleSet) }
func (c *cluster) scaleFlexible() error    { return c.scale("flexible") }
func (c *cluster) scaleDeallocated() error { return c.scale("off") }

// scale has a group of two machines shrink by one and grow by one.
func (c *cluster) scale(group string) error {
	var log bytes.Buffer
	provider := autoscale.New(autoscale.Config{
		Azure: struct {
			azure.Reader
			azure.Writer
		}{c.client.Fresh(), c.client},
		ResourceGroup: testkit.Group, Location: testkit.Location,
		Selection: nodegroup.Selection{Named: []nodegroup.Named{{Name: group, Limits: nodegroup.Limits{Max: 5}}}},
		Log:       slog.New(slog.NewTextHandler(&log, nil)),
	})
	ctx, stop := context.WithCancel(c.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		provider.Run(ctx)
	}()
	defer func() {
		stop()
		<-done
		provider.Close()
	}()
	err := scaleGroup(ctx, &autoscale.Server{Provider: provider}, group)
	if err != nil {
		return fmt.Errorf("%w: %s", err, log.String())
	}
	return nil
}

func scaleGroup(ctx context.Context, s *autoscale.Server, group string) error {
	list, err := running(ctx, s, group)
	if err != nil {
		return err
	}
	if len(list) != 2 {
		return fmt.Errorf("%d machines", len(list))
	}
	node := &externalgrpc.ExternalGrpcNode{ProviderID: list[0]}
	_, joined := s.NodeGroupForNode(ctx, &externalgrpc.NodeGroupForNodeRequest{Node: node})
	_, deleted := s.NodeGroupDeleteNodes(ctx, &externalgrpc.NodeGroupDeleteNodesRequest{
		Id: group, Nodes: []*externalgrpc.ExternalGrpcNode{node},
	})
	if err := errors.Join(joined, deleted); err != nil {
		return err
	}
	if list, err = running(ctx, s, group); err != nil || len(list) != 1 {
		return errors.Join(err, fmt.Errorf("%d machines after a deletion", len(list)))
	}
	if _, err := s.NodeGroupIncreaseSize(ctx, &externalgrpc.NodeGroupIncreaseSizeRequest{Id: group, Delta: 1}); err != nil {
		return err
	}
	if list, err = running(ctx, s, group); err != nil || len(list) != 2 {
		return errors.Join(err, fmt.Errorf("%d machines after an increase", len(list)))
	}
	return nil
}

// running waits and returns the machines of a group that run.
func running(ctx context.Context, s *autoscale.Server, group string) ([]string, error) {
	<-time.After(time.Minute)
	synctest.Wait()
	r, err := s.NodeGroupNodes(ctx, &externalgrpc.NodeGroupNodesRequest{Id: group})
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, i := range r.Instances {
		if i.Status.InstanceState == externalgrpc.InstanceStatus_instanceRunning {
			ids = append(ids, i.Id)
		}
	}
	return ids, nil
}
