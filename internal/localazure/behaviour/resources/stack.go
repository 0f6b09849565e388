package resources

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/template"
	"kaz/internal/template/types"
)

const (
	stackType = "Microsoft.Resources/deploymentStacks"
	// deploymentField has the deployment of a stack: its id, its request until it is begun, and the template.
	deploymentField = behaviour.Private + "deployment"
)

// stacks are deployments that remember what they made. What a later template no longer has is deleted or detached, and others can be kept
// from deleting or writing it.
func stacks() behaviour.Type {
	return behaviour.Type{
		Name: stackType,
		Style: behaviour.Style{
			Name: "Azure Resource Manager deployment stacks", Deleted: 202, Records: true,
			Long: map[behaviour.Verb]behaviour.Headers{
				behaviour.Create: behaviour.AsyncOperation, behaviour.Update: behaviour.AsyncOperation,
				behaviour.Delete: behaviour.AsyncOperation | behaviour.Location,
			},
			Protocol: behaviour.StackOperations(),
			Creating: "Initializing", Updating: "Deploying", Deleting: "Deleting", Overlap: behaviour.Busy,
		},
		Where:   behaviour.Anywhere,
		Own:     stackOwn(),
		Fill:    fillStack,
		Settle:  settleStack,
		Refuse:  noteUnmanage,
		Release: releaseStack,
		Removed: func(c *behaviour.Call) error {
			allow(c, c.Old)
			return nil
		},
		Show: func(_ *behaviour.Call, view behaviour.Object) {
			state := behaviour.Text(view, "properties.provisioningState")
			behaviour.Set(view, "properties.provisioningState", strings.ToLower(state[:min(1, len(state))])+state[min(1, len(state)):])
			behaviour.Hide(view)
		},
		Missing: func(c *behaviour.Call) error {
			return behaviour.Refusal(404, "DeploymentStackResourceNotFound", "The deployment stack '%s' could not be found.", c.ID)
		},
		AtOnce: func(c *behaviour.Call) bool { // there is nothing to delete
			return c.Verb == behaviour.Delete && len(behaviour.Array(c.Old, "properties.resources")) == 0
		},
		Actions: map[string]behaviour.Action{
			"exportTemplate": {Do: func(c *behaviour.Call) (any, error) {
				return behaviour.Object{"template": behaviour.At(c.Old, deploymentField+".template")}, nil
			}},
			"validate": {Do: validateStack, OnAbsent: true, Long: true, Deferred: true, Busy: "-", Headers: behaviour.Location},
		},
	}
}

// stackOwn are the properties that Azure writes.
func stackOwn() []string {
	return []string{"properties.deploymentId", "properties.resources", "properties.deletedResources", "properties.detachedResources",
		"properties.failedResources", "properties.outputs", "properties.duration", "properties.correlationId", "properties.error",
		deploymentField}
}

var stackName = regexp.MustCompile(`^[-\w._()]{1,90}$`)

// fillStack checks a stack with its template, and prepares the deployment of the template.
func fillStack(c *behaviour.Call) error {
	if err := checkStack(c); err != nil {
		return err
	}
	if err := permitDeny(c); err != nil {
		return err
	}
	allow(c, c.Old) // the stack itself may write what it denies to others
	inner, t, err := stackDeployment(c)
	if err != nil {
		return err
	}
	p := behaviour.Sub(c.Doc, "properties")
	given := givenParameters(t, behaviour.Sub(c.Body, "properties.parameters"))
	for _, name := range []string{"template", "parameters", "parametersLink"} {
		delete(p, name)
	}
	if len(given) > 0 {
		p["parameters"] = given
	}
	behaviour.Default(p, "deploymentScope", string(inner.ID.Parent()))
	for _, list := range []string{"resources", "detachedResources", "deletedResources", "failedResources"} {
		behaviour.Default(p, list, []any{})
	}
	behaviour.WriteSystemData(c)
	p["correlationId"] = c.GUID()
	delete(p, "error")
	c.Doc[deploymentField] = behaviour.Object{"id": string(inner.ID), "request": inner.Body,
		"template": behaviour.Clone(stored(inner.Doc).document), "begun": behaviour.Timestamp(c.Now())}
	return nil
}

// givenParameters are the parameters that the request for a stack has, each with its type as the template writes it.
func givenParameters(t *template.Template, sent behaviour.Object) behaviour.Object {
	given := behaviour.Object{}
	for name, declaration := range t.Declared() {
		d, _ := declaration.(behaviour.Object)
		if sent[name] == nil {
			continue
		}
		kind := behaviour.Text(d, "type")
		entry := behaviour.Object{"type": kind}
		if !types.Secure(kind) {
			entry["value"] = t.Parameters[name]
		}
		given[name] = entry
	}
	return given
}

// permitDeny refuses a caller without the right to manage the deny settings that a stack has or gets.
func permitDeny(c *behaviour.Call) error {
	for _, doc := range []behaviour.Object{c.Old, c.Doc} {
		if mode := behaviour.Text(doc, "properties.denySettings.mode"); mode != "" && mode != "none" {
			return c.Permit(c.Caller, stackType+"/manageDenySetting/action", c.ID)
		}
	}
	return nil
}

// checkStack checks a stack without its template.
func checkStack(c *behaviour.Call) error {
	invalid := func(format string, args ...any) error {
		return behaviour.Gateway(400, "InvalidRequestContent", "The request content was invalid: "+format, args...)
	}
	switch state := behaviour.Text(c.Old, "properties.provisioningState"); state {
	case "", "Succeeded", "Failed", "Canceled":
	default:
		return behaviour.Gateway(409, "DeploymentStackInNonTerminalState",
			"The deployment stack '%s' is in the non-terminal state '%s': wait until its operation has ended.", c.ID.Name(), state)
	}
	if !stackName.MatchString(c.ID.Name()) {
		return behaviour.Gateway(400, "InvalidDeploymentStackName",
			"The deployment stack name '%s' is not valid: 1 to 90 letters, digits, '-', '_', '.', '(' and ')' are allowed.", c.ID.Name())
	}
	if c.ID.Group() == "" && behaviour.Text(c.Doc, "location") == "" {
		return behaviour.Gateway(400, "LocationRequired", "The 'location' property must be specified for '%s'.", c.ID.Name())
	}
	for path, allowed := range map[string][]string{
		"actionOnUnmanage.resources":        {"delete", "detach"},
		"actionOnUnmanage.resourceGroups":   {"delete", "detach", ""},
		"actionOnUnmanage.managementGroups": {"delete", "detach", ""},
		"denySettings.mode":                 {"none", "denyDelete", "denyWriteAndDelete"},
	} {
		value := behaviour.Text(c.Body, "properties."+path)
		i := slices.IndexFunc(allowed, func(a string) bool { return strings.EqualFold(a, value) })
		if i < 0 {
			return invalid("the property '%s' is '%s', and must be one of %s.", path, value, strings.Join(allowed, ", "))
		}
		if allowed[i] != "" {
			behaviour.Set(c.Doc, "properties."+path, allowed[i])
		}
	}
	for path, most := range map[string]int{"excludedPrincipals": 5, "excludedActions": 200} {
		if n := len(behaviour.Array(c.Body, "properties.denySettings."+path)); n > most {
			return invalid("the property 'denySettings.%s' has %d elements, and may have %d.", path, n, most)
		}
	}
	behaviour.Default(c.Doc, "properties.denySettings.applyToChildScopes", false)
	behaviour.Default(c.Doc, "properties.actionOnUnmanage.resourceGroups", "detach")
	behaviour.Default(c.Doc, "properties.actionOnUnmanage.managementGroups", "detach")
	return nil
}

// stackDeployment checks the deployment of a stack's template, which has a name of its own each time.
func stackDeployment(c *behaviour.Call) (*behaviour.Call, *template.Template, error) {
	scope := c.ID.Parent()
	if at := behaviour.Text(c.Body, "properties.deploymentScope"); at != "" {
		if scope = azure.ID(at); !scope.Is("Microsoft.Resources/subscriptions") && !scope.Is(groupType) {
			return nil, nil, behaviour.Gateway(400, "InvalidDeploymentScope",
				"The deployment scope '%s' is no subscription and no resource group.", at)
		}
	}
	const longest = 64
	unique := c.Work().Once("deployment of "+c.ID.Key(), func() string { return c.Now().Format("-06010215") + c.GUID()[:5] })
	name := c.ID.Name()
	name = name[:min(len(name), longest-len(unique))] + unique
	properties := behaviour.Object{"mode": "Incremental"}
	for _, field := range []string{"template", "templateLink", "parameters", "parametersLink", "debugSetting"} {
		if value := behaviour.At(c.Body, "properties."+field); value != nil {
			properties[field] = behaviour.Clone(value)
		}
	}
	inner := *c
	inner.ID, inner.Old = scope.Resource(deploymentType, name), nil
	if err := c.Permit(c.Caller, deploymentType+"/write", inner.ID); err != nil {
		return nil, nil, err
	}
	inner.Body = behaviour.Object{"properties": properties}
	if scope.Group() == "" {
		inner.Body["location"] = c.Doc["location"]
	}
	call, t, _, err := checked(&inner)
	if err != nil {
		return nil, nil, err
	}
	call.Body[linkedField] = call.Doc[linkedField]
	return call, t, nil
}

// settleStack deploys the template, and when that has ended deletes or detaches what the stack no longer has.
func settleStack(c *behaviour.Call) error {
	d := behaviour.Sub(c.Doc, deploymentField)
	id := azure.ID(behaviour.Text(d, "id"))
	var err error
	if request := behaviour.Sub(d, "request"); request != nil {
		delete(d, "request")
		err = c.Apply(c.Caller, id, behaviour.Clone(request))
	} else {
		err = c.Outcome(id)
	}
	if behaviour.GoesOn(err) {
		return behaviour.Later()
	}
	managed := refs(c.Doc, "properties.resources")
	if fault, ok := errors.AsType[*behaviour.Error](err); ok {
		return failStack(c, id, managed, fault)
	}
	if err != nil {
		return err
	}
	made := outputResources(c, id)
	action := func(kind string) string { return behaviour.Text(c.Doc, "properties.actionOnUnmanage."+kind) }
	r := release(c, without(managed, made), action)
	deployment, _ := c.Get(id)
	p := behaviour.Sub(c.Doc, "properties")
	p["deploymentId"], p["outputs"] = string(id), behaviour.Clone(behaviour.At(deployment, "properties.outputs"))
	if p["outputs"] == nil {
		delete(p, "outputs")
	}
	p["deletedResources"], p["detachedResources"], p["failedResources"] = behaviour.Refs(r.deleted), behaviour.Refs(r.detached), r.failed
	keep := slices.Concat(made, r.left)
	p["resources"] = deny(c, c.Doc, keep)
	took(c, p, d)
	if len(r.failed) > 0 {
		return stackFailed(c, "DeploymentStackDeleteResourcesFailed", "One or more resources could not be deleted.", r.faults)
	}
	return nil
}

// took writes how long a stack took.
func took(c *behaviour.Call, properties, deployment behaviour.Object) {
	properties["timestamp"] = deployment["begun"]
	doc := behaviour.Object{"properties": properties}
	finish(c, doc)
	delete(properties, "timestamp")
}

// failStack is the end of a stack with a deployment that failed. What it has made, and what the stack had before, is managed.
func failStack(c *behaviour.Call, id azure.ID, managed []azure.ID, fault *behaviour.Error) error {
	deployment, _ := c.Get(id)
	failed := []any{}
	for _, o := range behaviour.Objects(deployment, operationsField) {
		resource := azure.ID(behaviour.Text(o, "properties.targetResource.id"))
		switch {
		case resource == "" || resource.Is(deploymentType):
		case behaviour.Text(o, "properties.provisioningState") == "Failed":
			failed = append(failed, behaviour.Object{"id": string(resource), "error": behaviour.At(o, "properties.statusMessage.error")})
		default:
			managed = append(without(managed, []azure.ID{resource}), resource)
		}
	}
	p := behaviour.Sub(c.Doc, "properties")
	p["deploymentId"], p["failedResources"], p["deletedResources"], p["detachedResources"] = string(id), failed, []any{}, []any{}
	p["resources"] = deny(c, c.Doc, managed)
	return stackFailed(c, "DeploymentStackDeploymentFailed", "One or more resources could not be deployed.", []*behaviour.Error{fault})
}

// stackFailed is the error of a stack, which is in its document, too.
func stackFailed(c *behaviour.Call, code, why string, details []*behaviour.Error) error {
	failure := &behaviour.Error{Status: 200, Code: code, Keep: true, Details: details,
		Message: fmt.Sprintf("%s Correlation id: '%s'.", why, behaviour.Text(c.Doc, "properties.correlationId"))}
	properties := behaviour.Clone(behaviour.Sub(c.Doc, "properties"))
	properties["error"] = failure.Body()
	delete(properties, "provisioningState")
	c.Edit(c.ID, func(doc behaviour.Object) {
		for name, value := range properties {
			behaviour.Set(doc, "properties."+name, value)
		}
		doc[deploymentField] = c.Doc[deploymentField]
	})
	return failure
}

// released is what became of resources that a stack no longer has.
type released struct {
	deleted, detached, left []azure.ID
	failed                  []any
	faults                  []*behaviour.Error
}

// release deletes or detaches resources, as action says for "resources" and "resourceGroups".
func release(c *behaviour.Call, all []azure.ID, action func(kind string) string) released {
	r := released{failed: []any{}}
	var unwanted []azure.ID
	for _, id := range all {
		kind := "resources"
		if id.Is(groupType) {
			kind = "resourceGroups"
		}
		if action(kind) == "delete" {
			unwanted = append(unwanted, id)
		} else {
			r.detached = append(r.detached, id)
		}
	}
	var faults []error
	r.deleted, r.left, faults = removeAll(c, unwanted)
	for i, id := range r.left {
		fault, ok := errors.AsType[*behaviour.Error](faults[i])
		if !ok {
			fault = behaviour.Invalid("InternalServerError", "%v", faults[i])
		}
		r.faults = append(r.faults, fault)
		r.failed = append(r.failed, behaviour.Object{"id": string(id), "error": fault.Body()})
	}
	return r
}

// noteUnmanage notes what a request to delete a stack says about its resources.
func noteUnmanage(c *behaviour.Call) error {
	for _, kind := range []string{"Resources", "ResourceGroups"} {
		value := c.Query.Get("unmanageaction." + strings.ToLower(kind))
		if value != "" && !strings.EqualFold(value, "delete") && !strings.EqualFold(value, "detach") {
			return behaviour.Gateway(400, "InvalidRequestContent",
				"The request content was invalid: the parameter 'unmanageAction.%s' is '%s', and must be one of delete, detach.",
				kind, value)
		}
		c.Notes[strings.ToLower(kind[:1])+kind[1:]] = strings.ToLower(value)
	}
	return nil
}

// releaseStack deletes or detaches the resources of a stack that is deleted.
func releaseStack(c *behaviour.Call) error {
	allow(c, c.Old)
	r := release(c, refs(c.Old, "properties.resources"), func(kind string) string { return behaviour.Text(c.Notes, kind) })
	if len(r.failed) == 0 {
		return nil
	}
	c.Doc = behaviour.Clone(c.Old)
	p := behaviour.Sub(c.Doc, "properties")
	p["deletedResources"], p["detachedResources"], p["failedResources"] = behaviour.Refs(r.deleted), behaviour.Refs(r.detached), r.failed
	p["resources"] = deny(c, c.Doc, r.left)
	return stackFailed(c, "DeploymentStackDeleteResourcesFailed", "One or more resources could not be deleted.", r.faults)
}

// refs are the resources in a list of a document.
func refs(doc behaviour.Object, path string) []azure.ID {
	var all []azure.ID
	for _, r := range behaviour.Objects(doc, path) {
		all = append(all, azure.ID(behaviour.Text(r, "id")))
	}
	return all
}

// without are the ids of all that are not among some.
func without(all, some []azure.ID) []azure.ID {
	return slices.DeleteFunc(slices.Clone(all), func(id azure.ID) bool { return slices.ContainsFunc(some, id.Equal) })
}

// validateStack checks a stack without making it.
func validateStack(c *behaviour.Call) (any, error) {
	call := *c
	call.Doc, call.Old = behaviour.Clone(c.Body), nil
	if call.Doc == nil {
		call.Doc = behaviour.Object{}
	}
	if err := checkStack(&call); err != nil {
		return nil, err
	}
	inner, t, err := stackDeployment(&call)
	if err != nil {
		return nil, err
	}
	properties := behaviour.Object{"correlationId": c.GUID(), "deploymentScope": string(inner.ID.Parent()),
		"actionOnUnmanage": behaviour.At(call.Doc, "properties.actionOnUnmanage"),
		"denySettings":     behaviour.At(call.Doc, "properties.denySettings")}
	var resources []azure.ID
	for _, r := range t.Resources {
		resources = append(resources, r.ID)
	}
	properties["validatedResources"] = behaviour.Refs(resources)
	if shown := shownParameters(t); len(shown) > 0 {
		properties["parameters"] = shown
	}
	return behaviour.Object{"id": string(c.ID), "name": c.ID.Name(), "type": stackType, "properties": properties}, nil
}
