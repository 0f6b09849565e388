package resources

import (
	"errors"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/resources/provider"
)

// deploymentOperations are the steps of a deployment.
func deploymentOperations() behaviour.Type {
	find := func(c *behaviour.Call) []behaviour.Object { return behaviour.Objects(c.Parent, operationsField) }
	return behaviour.Type{
		Name:     deploymentType + "/operations",
		Style:    behaviour.Plain("Azure Resource Manager deployments"),
		ReadOnly: true,
		NoState:  true,
		Find: func(c *behaviour.Call) (behaviour.Object, error) {
			for _, o := range find(c) {
				if behaviour.Text(o, "operationId") == c.ID.Name() {
					return o, nil
				}
			}
			return nil, nil
		},
		All: func(c *behaviour.Call) ([]behaviour.Object, error) { return find(c), nil },
		Missing: func(c *behaviour.Call) error {
			if c.Parent == nil {
				return behaviour.Gateway(404, "DeploymentNotFound", "Deployment '%s' could not be found.", c.ID.Parent().Name())
			}
			return behaviour.Gateway(404, "DeploymentOperationNotFound", "The deployment operation '%s' could not be found.", c.ID.Name())
		},
	}
}

// step records what a deployment did with a resource, or why it did not; no id is of a step without a resource.
func step(c *behaviour.Call, what string, id azure.ID, there bool, fault error) behaviour.Object {
	properties := behaviour.Object{
		"provisioningOperation": what, "provisioningState": "Succeeded", "timestamp": behaviour.Timestamp(c.Now()), "duration": "PT0S",
		"trackingId": c.GUID(), "statusCode": "Created",
	}
	if there || id.Is(deploymentType) {
		properties["statusCode"] = "OK"
	}
	const digits = 16
	name := strings.ToUpper(strings.ReplaceAll(c.GUID(), "-", ""))[:digits]
	if id != "" {
		properties["targetResource"], properties["serviceRequestId"] = target(id), c.GUID()
	} else {
		properties["statusMessage"], name = nil, behaviour.Digits(c.GUID())
	}
	if fault != nil {
		body := behaviour.Object{"code": "InternalServerError", "message": fault.Error()}
		properties["statusCode"] = "InternalServerError"
		if refusal, ok := errors.AsType[*behaviour.Error](fault); ok {
			body, properties["statusCode"] = refusal.Body(), strings.ReplaceAll(http.StatusText(refusal.Status), " ", "")
		}
		properties["provisioningState"], properties["statusMessage"] = "Failed", behaviour.Object{"status": "Failed", "error": body}
	}
	return behaviour.Object{"id": string(c.ID.Child("operations", name)), "operationId": name, "properties": properties}
}

// shortOperations answers for the steps of a deployment at the address without the
// provider in it, which ARM's own clients use. Without a name it is all of them.
func shortOperations(c *behaviour.Call) (behaviour.Reply, error) {
	scope, err := provider.Scope(c)
	if err != nil {
		return behaviour.Reply{}, err
	}
	id := azure.GroupID(scope.Subscription(), c.Param["group"]).Resource(deploymentType, c.Param["deployment"])
	doc, there := c.Get(id)
	if !there {
		return behaviour.Reply{}, behaviour.Gateway(404, "DeploymentNotFound", "Deployment '%s' could not be found.", id.Name())
	}
	steps := behaviour.Objects(doc, operationsField)
	name, one := c.Param["operation"]
	if !one {
		return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": append([]behaviour.Object{}, steps...)}}, nil
	}
	for _, o := range steps {
		if behaviour.Text(o, "operationId") == name {
			return behaviour.Reply{Status: 200, Body: o}, nil
		}
	}
	return behaviour.Reply{},
		behaviour.Gateway(404, "DeploymentOperationNotFound", "The deployment operation '%s' could not be found.", name)
}
