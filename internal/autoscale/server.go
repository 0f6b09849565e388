package autoscale

import (
	"context"
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
	spec := g.spec()
	return &externalgrpc.NodeGroup{Id: g.name, MinSize: int32(spec.Min), MaxSize: int32(spec.Max), Debug: string(g.set)}
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
	if g == nil || g.instance(machine).Deallocated {
		return none, nil
	}
	if _, fake := r.GetNode().GetAnnotations()[fakeReason]; !fake && !g.isPlaceholder(r.GetNode().GetProviderID()) {
		s.Provider.roster.change(func(known *roster) {
			known.note(machine, seenNode{r.GetNode().GetProviderID(), r.GetNode().GetName(), known.loop})
		})
		g.known.change(func(l *ledger) { l.register(machine) })
	}
	return &externalgrpc.NodeGroupForNodeResponse{NodeGroup: g.message()}, nil
}

func (g *group) isPlaceholder(id string) bool {
	return ask(&g.known, func(l *ledger) bool { return l.isPlaceholder(id) })
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
	s.Provider.roster.change(func(r *roster) { r.nextLoop(time.Now()) })
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
	return g, ask(&g.known, func(l *ledger) error {
		switch {
		case !l.read.IsZero():
			return nil
		case l.err != nil:
			return status.Errorf(codes.Unavailable, "the instances of the scale set %s are not known: %v", id, l.err)
		}
		return status.Errorf(codes.Unavailable, "the instances of the scale set %s are not known: not yet read", id)
	})
}

// NodeGroupTargetSize returns the size that a group is to have.
func (s *Server) NodeGroupTargetSize(_ context.Context, r *externalgrpc.NodeGroupTargetSizeRequest) (
	*externalgrpc.NodeGroupTargetSizeResponse, error,
) {
	g, err := s.find(r.GetId())
	if err != nil {
		return nil, err
	}
	return &externalgrpc.NodeGroupTargetSizeResponse{TargetSize: int32(ask(&g.known, (*ledger).target))}, nil
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
	if err = ask(&g.known, func(l *ledger) error { return l.increase(delta) }); err != nil {
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
	var waived bool
	g.known.change(func(l *ledger) { waived, err = l.decrease(-int(r.GetDelta())) })
	if err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	if waived {
		s.Provider.writes.submit(change{group: g, lower: true})
	}
	return &externalgrpc.NodeGroupDecreaseTargetSizeResponse{}, nil
}

// NodeGroupNodes returns the instances of a group.
func (s *Server) NodeGroupNodes(_ context.Context, r *externalgrpc.NodeGroupNodesRequest) (
	*externalgrpc.NodeGroupNodesResponse, error,
) {
	g, err := s.find(r.GetId())
	if err != nil {
		return nil, err
	}
	seen := s.Provider.seen()
	var all []*externalgrpc.Instance
	for _, i := range ask(&g.known, func(l *ledger) []shown { return l.shown(seen) }) {
		if !i.Deallocated {
			all = append(all, i.message())
		}
	}
	return &externalgrpc.NodeGroupNodesResponse{Instances: all}, nil
}

func (s shown) message() *externalgrpc.Instance {
	i := &externalgrpc.Instance{Id: s.providerID, Status: &externalgrpc.InstanceStatus{
		InstanceState: externalgrpc.InstanceStatus_InstanceState(s.State),
	}}
	if f := s.Failure; f != nil {
		i.Status.ErrorInfo = &externalgrpc.InstanceErrorInfo{
			ErrorCode: f.Code, ErrorMessage: f.Message, InstanceErrorClass: int32(f.Class),
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
	var leave []azure.ID
	var waived bool
	g.known.change(func(l *ledger) { leave, waived, err = l.delete(r.GetNodes()) })
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
	case other == nil && g.spec().Flexible && machine.Parent().Equal(g.set.Parent()): // it is in no list any more: gone already
		return nil
	case other == nil:
		return status.Errorf(codes.FailedPrecondition, "node %s (%s) is in no node group", node.GetName(), node.GetProviderID())
	case other != g:
		return status.Errorf(codes.FailedPrecondition, "node %s is in the node group %s, not in %s", node.GetName(), other.name, g.name)
	}
	return nil
}

// NodeGroupTemplateNodeInfo returns a node as the next machine of a group will be.
func (s *Server) NodeGroupTemplateNodeInfo(_ context.Context, r *externalgrpc.NodeGroupTemplateNodeInfoRequest) (
	*externalgrpc.NodeGroupTemplateNodeInfoResponse, error,
) {
	g, err := s.find(r.GetId())
	if err != nil {
		return nil, err
	}
	spec, seen := g.example()
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
	o := g.spec().Options
	if !o.Overrides() {
		return nil, status.Error(codes.Unimplemented, "the tags of the scale set have no options")
	}
	return &externalgrpc.NodeGroupAutoscalingOptionsResponse{NodeGroupAutoscalingOptions: merged(r.GetDefaults(), o)}, nil
}
