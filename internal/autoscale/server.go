package autoscale

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"

	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/azure"
	"kaz/internal/plan/nodegroup"
	"kaz/internal/plan/nodes"
)

// Server is the service that cluster-autoscaler calls. No call waits for Azure.
type Server struct {
	externalgrpc.UnimplementedCloudProviderServer
	Provider *Provider
}

var _ externalgrpc.CloudProviderServer = (*Server)(nil)

// fakeReason is the annotation of nodes that stand for instances without a node.
const fakeReason = "k8s.io/cluster-autoscaler/fake-node-reason"

// NodeGroups returns all node groups.
func (s *Server) NodeGroups(context.Context, *externalgrpc.NodeGroupsRequest) (*externalgrpc.NodeGroupsResponse, error) {
	if !s.Provider.Ready() {
		return nil, unready()
	}
	r := &externalgrpc.NodeGroupsResponse{}
	for _, g := range s.Provider.all() {
		r.NodeGroups = append(r.NodeGroups, g.message())
	}
	return r, nil
}

func unready() error {
	return status.Error(codes.Unavailable, "the scale sets have not been read yet; try again")
}

func (g *group) message() *externalgrpc.NodeGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &externalgrpc.NodeGroup{
		Id: g.name, MinSize: int32(g.status.Group.Min), MaxSize: int32(g.status.Group.Max),
		Debug: string(g.set),
	}
}

// NodeGroupForNode returns the group of a node, and an empty one for nodes that no group has.
func (s *Server) NodeGroupForNode(_ context.Context, r *externalgrpc.NodeGroupForNodeRequest) (
	*externalgrpc.NodeGroupForNodeResponse, error,
) {
	if !s.Provider.Ready() {
		return nil, unready()
	}
	none := &externalgrpc.NodeGroupForNodeResponse{NodeGroup: &externalgrpc.NodeGroup{}}
	machine, ok := nodes.MachineID(r.GetNode().GetProviderID())
	if !ok {
		return none, nil
	}
	g := s.Provider.groupOf(machine)
	if g == nil || g.off(machine) {
		return none, nil
	}
	if _, fake := r.GetNode().GetAnnotations()[fakeReason]; !fake && !g.isPlaceholder(r.GetNode().GetProviderID()) {
		s.Provider.mu.Lock()
		loop := s.Provider.loop
		s.Provider.mu.Unlock()
		s.Provider.note(machine, seenNode{r.GetNode().GetProviderID(), r.GetNode().GetName(), loop})
		g.register(machine)
	}
	return &externalgrpc.NodeGroupForNodeResponse{NodeGroup: g.message()}, nil
}

// off reports whether a machine is deallocated.
func (g *group) off(machine azure.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, listed := g.index[machine.Key()]
	return listed && g.status.Instances[at].Deallocated
}

func (g *group) isPlaceholder(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.refused {
		if strings.EqualFold(r.id, id) {
			return true
		}
	}
	return false
}

// GPULabel returns the label of nodes with GPUs.
func (s *Server) GPULabel(context.Context, *externalgrpc.GPULabelRequest) (*externalgrpc.GPULabelResponse, error) {
	return &externalgrpc.GPULabelResponse{Label: nodegroup.GPULabel}, nil
}

// GetAvailableGPUTypes returns the values that the label of nodes with GPUs has.
func (s *Server) GetAvailableGPUTypes(context.Context, *externalgrpc.GetAvailableGPUTypesRequest) (
	*externalgrpc.GetAvailableGPUTypesResponse, error,
) {
	types := map[string]*anypb.Any{}
	for _, name := range nodegroup.GPUTypes() {
		types[name] = &anypb.Any{}
	}
	return &externalgrpc.GetAvailableGPUTypesResponse{GpuTypes: types}, nil
}

// Cleanup is called when an autoscaler ends. The next one needs what is known, so nothing is dropped.
func (s *Server) Cleanup(context.Context, *externalgrpc.CleanupRequest) (*externalgrpc.CleanupResponse, error) {
	return &externalgrpc.CleanupResponse{}, nil
}

// Refresh begins a loop of the autoscaler. It reads nothing: the provider reads Azure by itself.
func (s *Server) Refresh(context.Context, *externalgrpc.RefreshRequest) (*externalgrpc.RefreshResponse, error) {
	if !s.Provider.Ready() {
		return nil, unready()
	}
	s.Provider.nextLoop()
	return &externalgrpc.RefreshResponse{}, nil
}

// find returns a group with known instances.
func (s *Server) find(id string) (*group, error) {
	if !s.Provider.Ready() {
		return nil, unready()
	}
	g := s.Provider.group(id)
	if g == nil {
		return nil, status.Errorf(codes.NotFound, "there is no node group %q", id)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.read.IsZero() {
		why := "not yet read"
		if g.err != nil {
			why = g.err.Error()
		}
		return nil, status.Errorf(codes.Unavailable, "the instances of the scale set %s are not known: %s", id, why)
	}
	return g, nil
}

// NodeGroupTargetSize returns the size that a group is to have.
func (s *Server) NodeGroupTargetSize(_ context.Context, r *externalgrpc.NodeGroupTargetSizeRequest) (
	*externalgrpc.NodeGroupTargetSizeResponse, error,
) {
	g, err := s.find(r.GetId())
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return &externalgrpc.NodeGroupTargetSizeResponse{TargetSize: int32(g.account().Target())}, nil
}

// NodeGroupIncreaseSize accepts an increase. What Azure refuses of it appears as instances with an error.
func (s *Server) NodeGroupIncreaseSize(_ context.Context, r *externalgrpc.NodeGroupIncreaseSizeRequest) (
	*externalgrpc.NodeGroupIncreaseSizeResponse, error,
) {
	g, err := s.find(r.GetId())
	if err != nil {
		return nil, err
	}
	delta := int(r.GetDelta())
	g.mu.Lock()
	if err = g.status.Group.Grow(g.account().Target(), delta); err == nil {
		g.queued += delta
	}
	g.mu.Unlock()
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	s.Provider.writes.submit(change{group: g, grow: delta})
	return &externalgrpc.NodeGroupIncreaseSizeResponse{}, nil
}

// NodeGroupDecreaseTargetSize takes back machines that were asked for and not made.
func (s *Server) NodeGroupDecreaseTargetSize(_ context.Context, r *externalgrpc.NodeGroupDecreaseTargetSizeRequest) (
	*externalgrpc.NodeGroupDecreaseTargetSizeResponse, error,
) {
	g, err := s.find(r.GetId())
	if err != nil {
		return nil, err
	}
	if r.GetDelta() >= 0 {
		return nil, status.Errorf(codes.InvalidArgument, "size decrease must be negative, it is %d", r.GetDelta())
	}
	waived, err := g.decrease(-int(r.GetDelta()))
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if waived {
		s.Provider.writes.submit(change{group: g, lower: true})
	}
	return &externalgrpc.NodeGroupDecreaseTargetSizeResponse{}, nil
}

// decrease takes n machines that do not exist off the size of a group. It takes queued machines first, then those that Azure
// refused, then those that the capacity counts. waived reports whether the capacity is to be lowered.
func (g *group) decrease(n int) (waived bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.account()
	missing := max(a.Missing()-a.Waived, 0)
	if n > g.queued+a.Refused+missing {
		return false, fmt.Errorf("attempt to delete existing nodes targetSize:%d delta:%d existingNodes: %d",
			a.Target(), -n, len(a.Active()))
	}
	take := min(n, g.queued)
	g.queued -= take
	n -= take
	kept := g.refused[:0]
	for _, r := range g.refused {
		if n > 0 && !r.counted {
			n--
			continue
		}
		kept = append(kept, r)
	}
	g.refused = kept
	g.waived += n
	return n > 0, nil
}

// NodeGroupNodes returns the instances of a group.
func (s *Server) NodeGroupNodes(_ context.Context, r *externalgrpc.NodeGroupNodesRequest) (
	*externalgrpc.NodeGroupNodesResponse, error,
) {
	g, err := s.find(r.GetId())
	if err != nil {
		return nil, err
	}
	return &externalgrpc.NodeGroupNodesResponse{Instances: g.list(s.Provider.seen())}, nil
}

// seen returns the nodes by the keys of their machines.
func (p *Provider) seen() map[string]seenNode {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.nodes)
}

// list returns the instances of a group. An instance with a node has the very provider id of the node.
func (g *group) list(nodes map[string]seenNode) []*externalgrpc.Instance {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]*externalgrpc.Instance, 0, len(g.status.Instances)+len(g.refused))
	g.each(nodes, func(s shown) {
		if !s.Deallocated {
			all = append(all, instance(s.providerID, s.State, s.Failure))
		}
	})
	return all
}

// shown is an instance as cluster-autoscaler sees it.
type shown struct {
	nodegroup.Instance
	providerID, node string // node is "" if it is none
	placeholder      bool
}

// each calls do with all instances of a group: machines, and placeholders of machines that do not come. The caller holds
// the lock.
func (g *group) each(seen map[string]seenNode, do func(shown)) {
	a := g.account()
	surplus := map[string]bool{}
	for _, i := range a.Surplus() {
		surplus[i.Key] = true
	}
	for _, i := range g.status.Instances {
		node, known := seen[i.Key]
		if !known {
			var err error
			if node.providerID, err = nodes.ProviderID(i.ID); err != nil {
				continue // no id of a machine
			}
		}
		if a.Leaving(i) || surplus[i.Key] {
			i.State, i.Failure = nodegroup.Deleting, nil
		}
		do(shown{Instance: i, providerID: node.providerID, node: node.name})
	}
	for _, r := range g.refused {
		do(shown{
			Instance:   nodegroup.Instance{State: nodegroup.Creating, Failure: &r.failure},
			providerID: r.id, placeholder: true,
		})
	}
}

func instance(id string, state nodegroup.State, failure *nodegroup.Failure) *externalgrpc.Instance {
	i := &externalgrpc.Instance{Id: id, Status: &externalgrpc.InstanceStatus{
		InstanceState: externalgrpc.InstanceStatus_InstanceState(state),
	}}
	if failure != nil {
		i.Status.ErrorInfo = &externalgrpc.InstanceErrorInfo{
			ErrorCode: failure.Code, ErrorMessage: failure.Message, InstanceErrorClass: int32(failure.Class),
		}
	}
	return i
}

// NodeGroupDeleteNodes accepts the deletion of all nodes, or of none.
func (s *Server) NodeGroupDeleteNodes(_ context.Context, r *externalgrpc.NodeGroupDeleteNodesRequest) (
	*externalgrpc.NodeGroupDeleteNodesResponse, error,
) {
	g, err := s.find(r.GetId())
	if err != nil {
		return nil, err
	}
	for _, node := range r.GetNodes() {
		if err := s.Provider.belongs(g, node); err != nil {
			return nil, err
		}
	}
	leave, waived, err := g.delete(r.GetNodes())
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if len(leave) > 0 || waived {
		s.Provider.writes.submit(change{group: g, leave: leave, lower: waived})
	}
	return &externalgrpc.NodeGroupDeleteNodesResponse{}, nil
}

// belongs returns an error if a node is not of a group.
func (p *Provider) belongs(g *group, node *externalgrpc.ExternalGrpcNode) error {
	if g.isPlaceholder(node.GetProviderID()) {
		return nil
	}
	machine, ok := nodes.MachineID(node.GetProviderID())
	if !ok {
		return status.Errorf(codes.InvalidArgument, "node %s: the provider id %q names no machine in Azure",
			node.GetName(), node.GetProviderID())
	}
	switch other := p.groupOf(machine); {
	case other == nil && g.mayHave(machine): // it is gone already
		return nil
	case other == nil:
		return status.Errorf(codes.FailedPrecondition, "node %s (%s) is in no node group", node.GetName(), node.GetProviderID())
	case other != g:
		return status.Errorf(codes.FailedPrecondition, "node %s is in the node group %s, not in %s", node.GetName(), other.name, g.name)
	}
	return nil
}

// mayHave reports whether a machine that is in no list can have belonged to the group.
func (g *group) mayHave(machine azure.ID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.status.Group.Flexible && machine.Parent().Equal(g.set.Parent())
}

// delete marks the machines of nodes as leaving. It returns the machines that were not leaving yet, and whether it removed
// placeholders that the capacity counts.
func (g *group) delete(list []*externalgrpc.ExternalGrpcNode) (leave []azure.ID, waived bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.account()
	lost := 0
	for _, node := range list {
		machine, ok := nodes.MachineID(node.GetProviderID())
		at, listed := g.index[machine.Key()]
		if !ok || !listed {
			continue
		}
		if i := g.status.Instances[at]; i.State == nodegroup.Deleting || i.Deallocated || a.Leaving(i) {
			continue
		}
		leave = append(leave, machine)
		if _, fake := node.GetAnnotations()[fakeReason]; !fake || g.wasNode[machine.Key()] {
			lost++
		}
	}
	if lost > 0 {
		if err := g.status.Group.Shrink(a.Target()-len(g.refused), lost); err != nil {
			return nil, false, err
		}
	}
	before := g.waived
	for _, node := range list {
		g.takePlaceholder(node.GetProviderID())
	}
	off := g.switchedOff()
	for _, machine := range leave {
		keep := g.keeps(machine, off)
		if keep {
			off++
		}
		g.leaving[machine.Key()] = departure{deallocate: keep}
	}
	return leave, g.waived > before, nil
}

// switchedOff returns how many machines of the group are deallocated or to be deallocated. The caller holds the lock.
func (g *group) switchedOff() int {
	n := 0
	for _, i := range g.status.Instances {
		if i.Deallocated || g.leaving[i.Key].deallocate {
			n++
		}
	}
	return n
}

// keeps reports whether a machine that leaves is deallocated instead of deleted. off is the number of machines that are
// deallocated so far. A machine that never was a node, or that Azure would not start again, is deleted. The caller holds the
// lock.
func (g *group) keeps(machine azure.ID, off int) bool {
	o := g.status.Group.Options
	return o.Deallocate && (!g.status.Group.Spot || g.status.Group.EvictedStay) && g.wasNode[machine.Key()] &&
		g.status.Instances[g.index[machine.Key()]].Failure == nil && (o.MaxDeallocated == 0 || off < o.MaxDeallocated)
}

// NodeGroupTemplateNodeInfo returns a node as the next machine of a group will be.
func (s *Server) NodeGroupTemplateNodeInfo(_ context.Context, r *externalgrpc.NodeGroupTemplateNodeInfoRequest) (
	*externalgrpc.NodeGroupTemplateNodeInfoResponse, error,
) {
	g, err := s.find(r.GetId())
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	spec, seen := g.status.Group, g.seen
	g.mu.Unlock()
	size, known := s.Provider.catalogue.size(spec.Size())
	node, _, err := spec.Template(size, known, seen)
	if err != nil {
		return nil, status.Error(codes.Unimplemented, err.Error())
	}
	text, err := node.Marshal()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &externalgrpc.NodeGroupTemplateNodeInfoResponse{NodeInfo: text, NodeBytes: text}, nil
}

// NodeGroupGetOptions returns the options of a group with tags that have some: those of the request, and what the tags say.
func (s *Server) NodeGroupGetOptions(_ context.Context, r *externalgrpc.NodeGroupAutoscalingOptionsRequest) (
	*externalgrpc.NodeGroupAutoscalingOptionsResponse, error,
) {
	g, err := s.find(r.GetId())
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	o := g.status.Group.Options
	g.mu.Unlock()
	if !o.Overrides() {
		return nil, status.Error(codes.Unimplemented, "the tags of the scale set have no options")
	}
	return &externalgrpc.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: merged(r.GetDefaults(), o)}, nil
}

// age returns how old what is known of a group is.
func (g *group) age(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.read.IsZero() {
		return 0
	}
	return now.Sub(g.read)
}
