package loadbalancer

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer/address"
	"kaz/internal/plan/loadbalancer/cluster"
	"kaz/internal/plan/loadbalancer/index"
	"kaz/internal/plan/loadbalancer/leftover"
	"kaz/internal/plan/loadbalancer/machine"
	"kaz/internal/plan/loadbalancer/naming"
	"kaz/internal/plan/loadbalancer/note"
	"kaz/internal/plan/loadbalancer/problem"
	"kaz/internal/plan/loadbalancer/query"
	"kaz/internal/plan/loadbalancer/spec"
)

// What a decision is made of.
type (
	Input       = index.Input
	Service     = spec.Service
	Config      = cluster.Config
	Balancer    = cluster.Balancer
	SharedProbe = cluster.SharedProbe
)

// AddressOfPublicIP stands for the address of a public IP until Azure has chosen it.
func AddressOfPublicIP(id azure.ID) string { return address.OfPublicIP(id) }

// AddressOfFrontend stands for the private address of a frontend until Azure has chosen it.
func AddressOfFrontend(balancer azure.ID, name string) string {
	return address.OfFrontend(balancer, name)
}

// Role is what a node is to load balancers.
type Role = cluster.Role

// The roles.
const (
	Receiver  = cluster.Receiver
	Excluded  = cluster.Excluded
	Bystander = cluster.Bystander
)

// UnknownNamespace is the namespace of Services of which no name is known.
const UnknownNamespace = naming.UnknownNamespace

// Reasons of problems. They are the reasons of the events that users see.
const (
	ReasonAnnotation      = problem.Annotation
	ReasonSpec            = problem.Spec
	ReasonConflict        = problem.Conflict
	ReasonSecurityGroup   = problem.SecurityGroup
	ReasonSubnet          = problem.Subnet
	ReasonAddress         = problem.Address
	ReasonDNSLabel        = problem.DNSLabel
	ReasonFamily          = problem.Family
	ReasonLink            = problem.Link
	ReasonChoice          = problem.Choice
	ReasonLimit           = problem.Limit
	ReasonUnread          = problem.Unread
	ReasonSourceRanges    = problem.SourceRanges
	ReasonAllowedIPRanges = problem.AllowedIPRanges
	ReasonTwoSources      = problem.TwoSources
	ReasonNodesDenied     = problem.NodesDenied
	ReasonNotDenied       = problem.NotDenied
	ReasonTags            = problem.Tags
	ReasonUnknown         = problem.Unknown
	ReasonUnheeded        = problem.Unheeded
	ReasonFrontendKept    = problem.FrontendKept
	ReasonNoNodes         = problem.NoNodes
	ReasonNodeNowhere     = problem.NodeNowhere
	ReasonNotJoined       = problem.NotJoined
	ReasonUnclaimed       = problem.Unclaimed
)

// Needs names what Have must hold to decide, given what it holds already: ask
// again with what was read, until it names nothing new.
func Needs(in Input) ([]azure.ID, []azure.Query) {
	return query.Needs(in, func() (plan.Graph, error) {
		graph, _, err := Desired(in)
		return graph, err
	})
}

// MayBeUnread reports whether a decision can do without a list that [Needs] names, or without a
// resource, whose id is the scope.
func MayBeUnread(c Config, scope azure.ID, fullType string) bool {
	return query.MayBeUnread(c, scope, fullType)
}

// RoleOf is what a node is to load balancers.
func RoleOf(c Config, n *v1.Node) Role { return cluster.RoleOf(c, n) }

// AtNodes reports whether packets for a Service arrive at the nodes' own addresses, not at the Service's.
func AtNodes(s *v1.Service) bool { return spec.AtNodes(s) }

// Leftovers are Services that the cluster does not have and of which Azure has something.
func Leftovers(c Config, have plan.Snapshot, all []*v1.Service) ([]Service, error) {
	return leftover.Find(c, have, all)
}

// Absent are the UIDs of those Services of an input to be served and of which
// no load balancer has anything.
func Absent(in Input) (map[types.UID]bool, error) { return leftover.Absent(in) }

// OtherName is the name of a cluster under which the addresses of this one's Services were made.
type OtherName = leftover.OtherName

// FindOtherName looks for public IPs that were made for Services of this cluster under another
// cluster's name.
func FindOtherName(in Input) (OtherName, bool, error) { return leftover.FindOtherName(in) }

// Unnoted is what must be noted at Services before a decision is applied, by UID.
func Unnoted(in Input, graph plan.Graph) map[types.UID][]key.Note { return note.Missing(in, graph) }

// StillNoted is what stays noted at Services that are served, by UID.
func StillNoted(in Input) map[types.UID][]key.Note { return note.Kept(in) }

// Machines are those that exist, by id key, as far as a decision reads them: all of those
// whose Node was deleted.
func Machines(in Input) (map[string]bool, error) {
	groups, err := machine.Read(in, index.Balancers(in))
	there := map[string]bool{}
	for _, g := range groups {
		for _, m := range g.Machines {
			there[m.ID.Key()] = true
		}
	}
	return there, err
}
