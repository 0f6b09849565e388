// Package problem names what is wrong with a Service, a node or a document. It has the reasons that users see as reasons
// of events, and a list to collect problems in. Layer L1.
package problem

import (
	"fmt"
	"slices"

	"kaz/internal/plan"
)

// Reasons of problems. They are the reasons of the events that users see.
const (
	Annotation    = "InvalidAnnotation" // a value that is not allowed
	Spec          = "InvalidSpec"       // a field that contradicts another one
	Conflict      = "FrontendConflict"  // something else uses the frontend, or its port
	SecurityGroup = "SecurityGroupNotFound"
	Subnet        = "SubnetNotFound"
	Address       = "InvalidAddress"          // an address or public IP that the Service cannot have
	DNSLabel      = "DNSLabelInUse"           // another Service has named the public IP
	Family        = "IPv6Alone"               // IPv6 where Azure requires IPv4 as well
	Link          = "PrivateLinkConflict"     // a private link service that the Service cannot have
	Choice        = "LoadBalancerNotEligible" // no load balancer may serve the Service
	Limit         = "LimitExceeded"           // a limit of Azure
	Unread        = "ResourceNotRead"         // a resource group or subnet that cannot be read
	Zones         = "ZonesNotKnown"           // a new address without the zones of the region

	// Warnings: the Service is served all the same.

	SourceRanges    = "InvalidSourceRanges"
	AllowedIPRanges = "InvalidAllowedIPRanges"
	TwoSources      = "ConflictConfiguration"
	NodesDenied     = "NodesDenied" // what is denied to the Service is denied to the nodes
	NotDenied       = "NotDenied"   // what the Service wants denied is not denied
	Tags            = "InvalidTags"
	Unknown         = "UnknownAnnotation"  // no such annotation exists
	Unheeded        = "UnheededAnnotation" // the annotation has no effect here
	FrontendKept    = "DeletingFrontendIPConfiguration"
	NoNodes         = "UnAvailableLoadBalancer" // no node serves the Service
	NodeNowhere     = "FailedToFindLoadBalancerForNode"
	NotJoined       = "NodeNotJoined" // its object is a node or a scale set
	// Unclaimed is what is removed because no Service uses it, which is only as certain as
	// the list of Services. Its object is a security group or a private link service.
	Unclaimed = "Unclaimed"
)

// List collects problems in the order in which they are found.
type List []plan.Problem

// Refuse adds a problem that keeps its object from being served.
func (l *List) Refuse(object, reason, format string, args ...any) {
	*l = append(*l, plan.Problem{Object: object, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Warn adds a problem in spite of which its object is served.
func (l *List) Warn(object, reason, format string, args ...any) {
	*l = append(*l, plan.Problem{Object: object, Reason: reason, Message: fmt.Sprintf(format, args...), Warning: true})
}

// Blocking reports whether the list has more than warnings.
func (l List) Blocking() bool {
	return slices.ContainsFunc(l, func(p plan.Problem) bool { return !p.Warning })
}

// Distinct is the list without repetitions.
func (l List) Distinct() []plan.Problem {
	seen := make(map[plan.Problem]bool, len(l))
	return slices.DeleteFunc(slices.Clone(l), func(p plan.Problem) bool {
		again := seen[p]
		seen[p] = true
		return again
	})
}
