package loadbalancer

import (
	"fmt"
	"slices"

	"kaz/internal/plan"
)

// Reasons of problems. They are the reasons of the events that users see.
const (
	ReasonAnnotation    = "InvalidAnnotation" // a value that is not allowed
	ReasonSpec          = "InvalidSpec"       // a field that contradicts another one
	ReasonConflict      = "FrontendConflict"  // somebody else stands at the frontend, or at its port
	ReasonSecurityGroup = "SecurityGroupNotFound"
	ReasonSubnet        = "SubnetNotFound"
	ReasonAddress       = "InvalidAddress"          // an address or public IP that cannot be had
	ReasonDNSLabel      = "DNSLabelInUse"           // another Service has named the public IP
	ReasonFamily        = "IPv6Alone"               // IPv6 where Azure wants IPv4 beside it
	ReasonLink          = "PrivateLinkConflict"     // a private link service that it cannot have
	ReasonChoice        = "LoadBalancerNotEligible" // no load balancer may serve it
	ReasonLimit         = "LimitExceeded"           // more than Azure takes
	ReasonUnread        = "ResourceNotRead"         // a resource group or subnet that may not be read, or a group that does not exist

	// Warnings: the Service is served all the same.
	ReasonSourceRanges    = "InvalidSourceRanges"
	ReasonAllowedIPRanges = "InvalidAllowedIPRanges"
	ReasonTwoSources      = "ConflictConfiguration"
	ReasonNodesDenied     = "NodesDenied" // what is denied to it is denied to the nodes
	ReasonNotDenied       = "NotDenied"   // what it wants denied is not
	ReasonTags            = "InvalidTags"
	ReasonUnknown         = "UnknownAnnotation"  // nobody heeds it
	ReasonUnheeded        = "UnheededAnnotation" // nobody heeds it where it is
	ReasonFrontendKept    = "DeletingFrontendIPConfiguration"
	ReasonNoNodes         = "UnAvailableLoadBalancer" // nobody serves it
	ReasonNodeNowhere     = "FailedToFindLoadBalancerForNode"
	ReasonNotJoined       = "NodeNotJoined" // its object is a node or a scale set
	// What is taken away because no Service has it: only as true as all of them are known.
	// Its object is a security group, or a private link service.
	ReasonUnclaimed = "Unclaimed"
)

type problems []plan.Problem

func (p *problems) refuse(object, reason, format string, args ...any) {
	*p = append(*p, plan.Problem{Object: object, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (p *problems) warn(object, reason, format string, args ...any) {
	*p = append(*p, plan.Problem{Object: object, Reason: reason, Message: fmt.Sprintf(format, args...), Warning: true})
}

// blocking reports whether one of them keeps its object from being served.
func (p problems) blocking() bool {
	return slices.ContainsFunc(p, func(one plan.Problem) bool { return !one.Warning })
}
