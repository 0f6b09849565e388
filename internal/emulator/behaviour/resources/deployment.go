package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/template"
)

const deploymentType = "Microsoft.Resources/deployments"

// Private fields of a deployment: its template, the parameters as they were given,
// and its steps.
const (
	templateField   = behaviour.Private + "template"
	parametersField = behaviour.Private + "parameters"
	operationsField = behaviour.Private + "operations"
)

func deployments() behaviour.Type {
	return behaviour.Type{
		Name:   deploymentType,
		Style:  behaviour.Deployment(),
		Where:  behaviour.Anywhere,
		Fill:   fillDeployment,
		Settle: deploy,
		Show:   func(_ *behaviour.Call, view behaviour.Object) { behaviour.Hide(view) },
		Missing: func(c *behaviour.Call) error {
			return behaviour.Gateway(404, "DeploymentNotFound", "Deployment '%s' could not be found.", c.ID.Name())
		},
		Actions: map[string]behaviour.Action{
			"validate": {Do: validate, Anew: true},
			"cancel": {Status: 204, Do: func(c *behaviour.Call) (any, error) {
				if !c.Cancel(c.ID) {
					return nil, behaviour.Gateway(409, "DeploymentCannotBeCancelled",
						"The deployment '%s' cannot be cancelled: its provisioning state is '%s'.", c.ID.Name(),
						behaviour.Text(c.Old, "properties.provisioningState"))
				}
				return nil, nil
			}},
			"exportTemplate": {Do: func(c *behaviour.Call) (any, error) { return behaviour.Object{"template": c.Old[templateField]}, nil }},
		},
	}
}

var deploymentName = regexp.MustCompile(`^[-\w._()]{1,64}$`)

// fillDeployment checks what is to be deployed and makes the deployment's document.
func fillDeployment(c *behaviour.Call) error {
	if !deploymentName.MatchString(c.ID.Name()) {
		return behaviour.Gateway(400, "InvalidDeploymentName",
			"The deployment name '%s' is not valid: 1 to 64 letters, digits, '-', '_', '.', '(' and ')' are allowed.", c.ID.Name())
	}
	if behaviour.Text(c.Old, "properties.provisioningState") == "Accepted" {
		return behaviour.Gateway(409, "DeploymentActive",
			"Unable to edit or replace deployment '%s': previous deployment from '%s' is still active. Please see "+
				"https://aka.ms/arm-deploy for usage details.", c.ID.Name(), behaviour.Text(c.Old, "properties.timestamp"))
	}
	if c.ID.Group() == "" && behaviour.Text(c.Doc, "location") == "" {
		return behaviour.Gateway(400, "LocationRequired",
			"The 'location' property must be specified for '%s'. Please see https://aka.ms/deploy-to-subscription for usage details.",
			c.ID.Name())
	}
	mode := behaviour.Text(c.Body, "properties.mode")
	if !strings.EqualFold(mode, "Incremental") {
		if strings.EqualFold(mode, "Complete") {
			return behaviour.Refusal(501, "NotImplemented", "The local Azure deploys in the mode Incremental only.")
		}
		return behaviour.Gateway(400, "InvalidRequestContent",
			"The request content was invalid: the deployment mode '%s' is not one of Incremental, Complete.", mode)
	}
	document := behaviour.Sub(c.Body, "properties.template")
	if document == nil {
		return behaviour.Gateway(400, "InvalidTemplate",
			"Deployment template validation failed: 'the deployment has no template. The local Azure does not follow links to templates.'.")
	}
	given := behaviour.Sub(c.Body, "properties.parameters")
	t, err := bind(c, document, given)
	if err != nil {
		return err
	}
	if err := authorize(c, t); err != nil {
		return err
	}
	c.Doc[templateField], c.Doc[parametersField] = behaviour.Clone(document), behaviour.Clone(given)
	c.Doc["properties"] = behaviour.Object{
		"templateHash": hash(document), "parameters": shownParameters(document, t.Parameters), "mode": "Incremental",
		"timestamp": behaviour.Timestamp(c.Now()), "duration": "PT0S", "correlationId": c.GUID(),
		"providers": deployedProviders(t), "dependencies": shownDependencies(t),
	}
	return nil
}

// authorize refuses a deployment of resources that the caller may not write itself.
func authorize(c *behaviour.Call, t *template.Template) error {
	for _, r := range t.Resources {
		action := r.ID.Type() + "/write"
		if c.Allowed(c.Principal, action, r.ID) {
			continue
		}
		return behaviour.Gateway(403, "InvalidTemplateDeployment",
			"Deployment failed with multiple errors: 'Authorization failed for template resource '%s' of type '%s'. The client '%s' "+
				"with object id '%s' does not have permission to perform action '%s' at scope '%s'.'",
			r.ID.Name(), r.ID.Type(), c.Principal.ApplicationID, c.Principal.ObjectID, action, r.ID)
	}
	return nil
}

// hash is a template's hash, in decimal as Azure shows it.
func hash(document behaviour.Object) string {
	text, err := json.Marshal(document)
	if err != nil {
		panic("a template that was JSON is not: " + err.Error())
	}
	h := fnv.New64a()
	_, _ = h.Write(text) // never fails
	return strconv.FormatUint(h.Sum64(), 10)
}

// shownParameters are all parameters with their types, but not the values of secret
// ones.
func shownParameters(document, values behaviour.Object) behaviour.Object {
	shown := behaviour.Object{}
	for name, declaration := range behaviour.Sub(document, "parameters") {
		d, _ := declaration.(behaviour.Object)
		kind := behaviour.Text(d, "type")
		entry := behaviour.Object{"type": template.TypeName(kind)}
		if !template.Secure(kind) {
			entry["value"] = values[name]
		}
		shown[name] = entry
	}
	return shown
}

// deployedProviders are the namespaces and types that a template deploys, and where.
func deployedProviders(t *template.Template) []any {
	order, types := []string{}, map[string][]string{}
	places := map[string][]any{}
	for _, r := range t.Resources {
		full := r.ID.Type()
		namespace := r.ID.Namespace()
		name := full[len(namespace)+1:]
		if !slices.Contains(order, namespace) {
			order = append(order, namespace)
		}
		if !slices.Contains(types[namespace], name) {
			types[namespace] = append(types[namespace], name)
		}
		var place any
		if r.Location != "" {
			place = strings.ToLower(strings.ReplaceAll(r.Location, " ", ""))
		}
		if !slices.Contains(places[full], place) {
			places[full] = append(places[full], place)
		}
	}
	shown := []any{}
	for _, namespace := range order {
		list := []any{}
		for _, name := range types[namespace] {
			list = append(list, behaviour.Object{"resourceType": name, "locations": places[namespace+"/"+name]})
		}
		shown = append(shown, behaviour.Object{"namespace": namespace, "resourceTypes": list})
	}
	return shown
}

func shownDependencies(t *template.Template) []any {
	own := map[string]bool{}
	for _, r := range t.Resources {
		own[r.ID.Key()] = true
	}
	shown := []any{}
	for _, r := range t.Resources {
		on := []any{}
		for _, id := range r.DependsOn {
			if own[id.Key()] {
				on = append(on, target(id))
			}
		}
		if len(on) > 0 {
			entry := target(r.ID)
			entry["dependsOn"] = on
			shown = append(shown, entry)
		}
	}
	return shown
}

// target is a resource as deployments and their operations name it.
func target(id azure.ID) behaviour.Object {
	names := []string{}
	for at := id; strings.Count(at.Type(), "/") > 0; at = at.Parent() {
		names = append([]string{at.Name()}, names...)
		if strings.Count(at.Type(), "/") == 1 {
			break
		}
	}
	return behaviour.Object{"id": string(id), "resourceType": id.Type(), "resourceName": strings.Join(names, "/")}
}

// validate checks a deployment without making it.
func validate(c *behaviour.Call) (any, error) {
	call := *c
	call.Doc = behaviour.Clone(c.Body)
	if call.Doc == nil {
		call.Doc = behaviour.Object{}
	}
	if err := fillDeployment(&call); err != nil {
		return nil, err
	}
	t, err := bind(&call, behaviour.Sub(c.Body, "properties.template"), behaviour.Sub(c.Body, "properties.parameters"))
	if err != nil {
		return nil, err
	}
	resources := make([]any, len(t.Resources))
	for i, r := range t.Resources {
		resources[i] = behaviour.Ref(r.ID)
	}
	properties := behaviour.Sub(call.Doc, "properties")
	properties["provisioningState"], properties["validatedResources"] = "Succeeded", resources
	return behaviour.Object{"id": string(c.ID), "name": c.ID.Name(), "type": deploymentType, "properties": properties}, nil
}

// deploy makes the resources of a deployment, one after the other. A refused resource
// makes the deployment fail: resources that depend on it are not begun, all others are
// made.
func deploy(c *behaviour.Call) error {
	t, err := bind(c, behaviour.Sub(c.Doc, templateField), behaviour.Sub(c.Doc, parametersField))
	if err != nil {
		return err
	}
	var made []azure.ID
	var faults []error
	without, steps := map[string]bool{}, []any{}
	for _, r := range t.Resources {
		if slices.ContainsFunc(append(r.DependsOn, r.ID.Parent()), func(id azure.ID) bool { return without[id.Key()] }) {
			without[r.ID.Key()] = true
			continue
		}
		fault := makeResource(c, t, r)
		steps = append(steps, step(c, r.ID, fault))
		if fault != nil {
			without[r.ID.Key()] = true
			faults = append(faults, fault)
			continue
		}
		made = append(made, r.ID)
	}
	if len(faults) > 0 {
		return failDeployment(c, faults, steps)
	}
	outputs, err := shownOutputs(t)
	if err != nil {
		return failDeployment(c, []error{err}, steps)
	}
	if len(outputs) > 0 {
		behaviour.Set(c.Doc, "properties.outputs", outputs)
	}
	behaviour.Set(c.Doc, "properties.outputResources", behaviour.Refs(made))
	c.Doc[operationsField] = steps
	finish(c, c.Doc)
	return nil
}

// finish writes how long a deployment took.
func finish(c *behaviour.Call, doc behaviour.Object) {
	begun, err := time.Parse(time.RFC3339Nano, behaviour.Text(doc, "properties.timestamp"))
	if err == nil {
		behaviour.Set(doc, "properties.duration", fmt.Sprintf("PT%sS", strconv.FormatFloat(c.Now().Sub(begun).Seconds(), 'f', -1, 64)))
	}
	behaviour.Set(doc, "properties.timestamp", behaviour.Timestamp(c.Now()))
}

func makeResource(c *behaviour.Call, t *template.Template, r *template.Resource) error {
	body, err := t.Body(r)
	if err != nil {
		return invalidTemplate(err)
	}
	return c.Apply(r.ID, body)
}

// failDeployment is the error of a deployment that failed on the way. It is in the
// deployment's document, too.
func failDeployment(c *behaviour.Call, faults []error, steps []any) error {
	failure := &behaviour.Error{
		Status: 200, Code: "DeploymentFailed", Keep: true,
		Message: "At least one resource deployment operation failed. Please list deployment operations for details. Please see " +
			"https://aka.ms/arm-deployment-operations for usage details.",
	}
	for _, fault := range faults {
		inner, ok := errors.AsType[*behaviour.Error](fault)
		if !ok {
			inner = behaviour.Invalid("InvalidTemplate", "%v", fault)
		}
		failure.Details = append(failure.Details, inner)
	}
	c.Edit(c.ID, func(doc behaviour.Object) {
		behaviour.Set(doc, "properties.error", failure.Body())
		doc[operationsField] = steps
		finish(c, doc)
	})
	return failure
}

func shownOutputs(t *template.Template) (behaviour.Object, error) {
	outputs, err := t.Outputs()
	if err != nil {
		return nil, invalidTemplate(err)
	}
	shown := behaviour.Object{}
	for name, o := range outputs {
		output := behaviour.Object{"type": o.Type}
		if !o.Secure {
			output["value"] = o.Value
		}
		shown[name] = output
	}
	return shown, nil
}
