package resources

import (
	"errors"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/template"
)

const policyAssignmentType = "Microsoft.Authorization/policyAssignments"

// denied is the refusal of a deployment with resources that policies deny, also in nested deployments, nil for none. As in Azure, nothing
// of it is made.
func denied(c *behaviour.Call, s *source, t *template.Template) error {
	if !governed(c) {
		return nil
	}
	p := newPrediction(true)
	call := *c
	call.Verb = behaviour.Create
	call.Try(func() { p.deploy(&call, s, t) })
	if len(p.denied) == 0 {
		return p.incomplete
	}
	refusal := behaviour.Gateway(400, "InvalidTemplateDeployment",
		"The template deployment failed because of policy violation. Please see details for more information.")
	refusal.Details = p.denied
	return refusal
}

// governed reports whether the subscription of a deployment has policies at all.
func governed(c *behaviour.Call) bool {
	for range c.List(azure.SubscriptionID(c.ID.Subscription()), policyAssignmentType) {
		return true
	}
	return false
}

// noteDenied notes an error if policies are its cause.
func (p *prediction) noteDenied(err error) {
	if fault, ok := errors.AsType[*behaviour.Error](err); ok && fault.Code == "RequestDisallowedByPolicy" {
		p.denied = append(p.denied, fault)
	}
}
