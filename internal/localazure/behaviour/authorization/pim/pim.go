// Package pim has what Privileged Identity Management adds to Microsoft.Authorization: requests for roles that are held or can be
// activated for a time, the schedules and the instances that follow from the requests, and the policies of roles. A schedule grants
// nothing here. Layer L2.
package pim

import (
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/authorization"
)

const namespace = "Microsoft.Authorization/"

// Provider has the types.
func Provider() behaviour.Provider {
	var types []behaviour.Type
	for _, k := range []kind{{"Assignment", "assignment"}, {"Eligibility", "eligibility"}} {
		types = append(types, k.requests(), k.computed("Schedules", k.schedules), k.computed("ScheduleInstances", k.instances))
	}
	return behaviour.Provider{Types: append(types, policies(), policyAssignments(), eligibleChildren())}
}

// kind says how a role is held: it is assigned, or can be activated.
type kind struct{ name, lower string }

func (k kind) typeName(what string) string { return namespace + "role" + k.name + what }

// member is a property with the kind in its name, such as "targetRoleAssignmentScheduleId".
func (k kind) member(before, after string) string { return before + "ole" + k.name + after }

// requests is the type of the requests. A request is the only document; schedules and instances are computed from it.
func (k kind) requests() behaviour.Type {
	style := behaviour.Plain("Microsoft.Authorization")
	target := k.member("targetR", "ScheduleId")
	return behaviour.Type{
		Name: k.typeName("ScheduleRequests"), Style: style, NoState: true,
		Own: []string{"properties.status", "properties.createdOn", "properties.requestorId", "properties.scope", "properties.principalType",
			"properties.expandedProperties"},
		Fill: func(c *behaviour.Call) error { return fillRequest(c, target) },
		All: func(c *behaviour.Call) ([]behaviour.Object, error) {
			return append([]behaviour.Object{}, related(c, k.typeName("ScheduleRequests"))...), nil
		},
		Filter: authorization.PrincipalFilter,
		Actions: map[string]behaviour.Action{
			"cancel": {Do: func(c *behaviour.Call) (any, error) {
				behaviour.Set(c.Doc, "properties.status", "Canceled")
				return nil, nil
			}},
			"validate": {OnAbsent: true, Do: func(c *behaviour.Call) (any, error) {
				asked := *c
				asked.Doc = behaviour.Object{"id": string(c.ID), "name": c.ID.Name(), "type": c.Type.Name,
					"properties": behaviour.Clone(behaviour.Sub(c.Body, "properties"))}
				if err := fillRequest(&asked, target); err != nil {
					return nil, err
				}
				return asked.Doc, nil
			}},
		},
	}
}

// statuses are the states of requests that Azure carries out at once, by their types.
var statuses = map[string]string{
	"AdminAssign": "Provisioned", "AdminUpdate": "Provisioned", "AdminExtend": "Provisioned", "AdminRenew": "Provisioned",
	"SelfActivate": "Provisioned", "SelfExtend": "PendingApproval", "SelfRenew": "PendingApproval",
	"AdminRemove": "Revoked", "SelfDeactivate": "Revoked",
}

// fillRequest checks a request, and writes what Azure adds to it.
func fillRequest(c *behaviour.Call, target string) error {
	principal, kind := behaviour.Text(c.Doc, "properties.principalId"), behaviour.Text(c.Doc, "properties.requestType")
	status, known := statuses[kind]
	switch {
	case principal == "":
		return behaviour.Invalid("InvalidPrincipalId", "The role assignment request has no principalId.")
	case !known:
		return behaviour.Invalid("InvalidRequestType", "The requestType '%s' of the role assignment request is not valid.", kind)
	}
	role, there := authorization.Definition(c, azure.ID(behaviour.Text(c.Doc, "properties.roleDefinitionId")))
	if !there {
		return behaviour.Refusal(404, "RoleDefinitionDoesNotExist", "The specified role definition with ID '%s' does not exist.",
			azure.ID(behaviour.Text(c.Doc, "properties.roleDefinitionId")).Name())
	}
	scope := c.ID.Parent()
	now := behaviour.Timestamp(c.Now())
	properties := behaviour.Sub(c.Doc, "properties")
	for name, value := range map[string]any{
		"status": status, "createdOn": now, "scope": string(scope), "principalType": "User", "requestorId": requestor(c, principal),
		"ticketInfo": behaviour.Object{}, target: c.ID.Name(), "expandedProperties": behaviour.Object{
			"scope":          expandedScope(c, scope),
			"roleDefinition": expandedRole(role),
			"principal":      expandedPrincipal(c, principal),
		},
	} {
		behaviour.Default(c.Doc, "properties."+name, value)
	}
	info, _ := properties["scheduleInfo"].(behaviour.Object)
	if info != nil && info["startDateTime"] == nil {
		info["startDateTime"] = now
	}
	return nil
}

// requestor is the object id of the caller, or of the principal if the owner of this local Azure asks.
func requestor(c *behaviour.Call, principal string) string {
	if c.Caller.Principal != nil && c.Caller.Principal.ObjectID != "" {
		return c.Caller.Principal.ObjectID
	}
	return principal
}

func expandedScope(c *behaviour.Call, scope azure.ID) behaviour.Object {
	kind, shown := "resource", scope.Name()
	switch {
	case scope.Is("Microsoft.Resources/subscriptions"):
		kind = "subscription"
		if doc, there := c.View(scope); there && behaviour.Text(doc, "displayName") != "" {
			shown = behaviour.Text(doc, "displayName")
		}
	case scope.Is("Microsoft.Resources/resourceGroups"):
		kind = "resourcegroup"
	case scope.Is("Microsoft.Management/managementGroups"):
		kind = "managementgroup"
	}
	return behaviour.Object{"id": string(scope), "displayName": shown, "type": kind}
}

// expandedPrincipal is a principal with its names, if the directory has such a user.
func expandedPrincipal(c *behaviour.Call, id string) behaviour.Object {
	shown := behaviour.Object{"id": id, "type": "User"}
	if user, there := c.User(id); there {
		shown["displayName"], shown["email"] = user.Name, user.Email
	}
	return shown
}

func expandedRole(role behaviour.Object) behaviour.Object {
	return behaviour.Object{"id": role["id"], "displayName": behaviour.Text(role, "properties.roleName"),
		"type": behaviour.Text(role, "properties.type")}
}

// related are the stored documents of a type at the scope of the call, above it and below it.
func related(c *behaviour.Call, fullType string) []behaviour.Object {
	var found []behaviour.Object
	add := func(id azure.ID, doc behaviour.Object) {
		scope := id.Parent()
		if c.ID.Under(scope) || scope.Under(c.ID) {
			found = append(found, doc)
		}
	}
	for id, doc := range c.List("", fullType) {
		add(id, doc)
	}
	for id, doc := range behaviour.Everywhere(c, fullType) {
		add(id, doc)
	}
	return found
}

// computed is a type of resources that follow from the requests.
func (k kind) computed(what string, all func(c *behaviour.Call) []behaviour.Object) behaviour.Type {
	return behaviour.Type{
		Name: k.typeName(what), Style: behaviour.Plain("Microsoft.Authorization"), NoState: true, ReadOnly: true, AnyScope: true,
		All: func(c *behaviour.Call) ([]behaviour.Object, error) { return all(c), nil },
		Find: func(c *behaviour.Call) (behaviour.Object, error) {
			at := *c
			at.ID = c.ID.Parent()
			for _, one := range all(&at) {
				if strings.EqualFold(behaviour.Text(one, "name"), c.ID.Name()) {
					return one, nil
				}
			}
			return nil, nil
		},
		Filter: authorization.PrincipalFilter,
	}
}

// schedules are the schedules that the requests made and did not end.
func (k kind) schedules(c *behaviour.Call) []behaviour.Object {
	byName, names := map[string]behaviour.Object{}, []string{}
	for _, request := range related(c, k.typeName("ScheduleRequests")) {
		schedule := k.schedule(request)
		if schedule == nil || behaviour.Text(request, "properties.status") == "Canceled" {
			continue
		}
		name := behaviour.Text(schedule, "name")
		switch {
		case behaviour.Text(request, "properties.status") == "Revoked":
			for other, one := range byName {
				if sameGrant(one, schedule) {
					delete(byName, other)
				}
			}
		case behaviour.Text(request, "properties.status") == "Provisioned":
			if byName[name] == nil {
				names = append(names, name)
			}
			byName[name] = schedule
		}
	}
	all := []behaviour.Object{}
	for _, name := range names {
		if byName[name] != nil {
			all = append(all, byName[name])
		}
	}
	return all
}

func sameGrant(a, b behaviour.Object) bool {
	for _, name := range []string{"scope", "principalId", "roleDefinitionId"} {
		if !strings.EqualFold(behaviour.Text(a, "properties."+name), behaviour.Text(b, "properties."+name)) {
			return false
		}
	}
	return true
}

// copied are the properties that a schedule has from its request, and an instance from its schedule.
var copied = []string{"scope", "principalId", "principalType", "roleDefinitionId", "createdOn", "condition", "conditionVersion",
	"expandedProperties", "linkedRoleEligibilityScheduleId", "assignmentType", "memberType", "startDateTime", "endDateTime", "status"}

func copyProperties(from behaviour.Object) behaviour.Object {
	properties := behaviour.Object{}
	for _, name := range copied {
		if value := behaviour.At(from, "properties."+name); value != nil {
			properties[name] = behaviour.Clone(value)
		}
	}
	return properties
}

// schedule is the schedule that a request makes, nil if its times cannot be read.
func (k kind) schedule(request behaviour.Object) behaviour.Object {
	start, err := time.Parse(time.RFC3339, behaviour.Text(request, "properties.scheduleInfo.startDateTime"))
	if err != nil {
		return nil
	}
	id := azure.ID(behaviour.Text(request, "id"))
	name := behaviour.Text(request, "properties."+k.member("targetR", "ScheduleId"))
	properties := copyProperties(request)
	properties["memberType"], properties["startDateTime"] = "Direct", behaviour.Timestamp(start)
	properties["updatedOn"] = properties["createdOn"]
	properties[k.member("r", "ScheduleRequestId")] = string(id)
	if k.name == "Assignment" {
		properties["assignmentType"] = "Assigned"
		if behaviour.Text(request, "properties.requestType") == "SelfActivate" {
			properties["assignmentType"] = "Activated"
		}
	}
	expiration := behaviour.Sub(request, "properties.scheduleInfo.expiration")
	if end, ends := endOf(start, expiration); ends {
		properties["endDateTime"] = behaviour.Timestamp(end)
	}
	return k.resource(id.Parent(), "Schedules", name, properties)
}

func (k kind) resource(scope azure.ID, what, name string, properties behaviour.Object) behaviour.Object {
	fullType := k.typeName(what)
	return behaviour.Object{"id": string(scope.Resource(fullType, name)), "name": name, "type": fullType, "properties": properties}
}

// instances are what the schedules grant now.
func (k kind) instances(c *behaviour.Call) []behaviour.Object {
	all := []behaviour.Object{}
	for _, schedule := range k.schedules(c) {
		start, _ := time.Parse(time.RFC3339, behaviour.Text(schedule, "properties.startDateTime")) // written by schedule
		end, err := time.Parse(time.RFC3339, behaviour.Text(schedule, "properties.endDateTime"))
		if c.Now().Before(start) || err == nil && !c.Now().Before(end) {
			continue
		}
		properties := copyProperties(schedule)
		properties[k.member("r", "ScheduleId")] = schedule["id"]
		if linked := behaviour.Text(schedule, "properties.linkedRoleEligibilityScheduleId"); linked != "" {
			properties["linkedRoleEligibilityScheduleInstanceId"] = linked // instances have the names of their schedules
		}
		scope := azure.ID(behaviour.Text(schedule, "properties.scope"))
		all = append(all, k.resource(scope, "ScheduleInstances", behaviour.Text(schedule, "name"), properties))
	}
	return all
}

// eligibleChildren is the type of what is in a scope and can have roles of its own.
func eligibleChildren() behaviour.Type {
	return behaviour.Type{
		Name: namespace + "eligibleChildResources", Style: behaviour.Plain("Microsoft.Authorization"), NoState: true, ReadOnly: true,
		AnyScope: true,
		Find:     func(*behaviour.Call) (behaviour.Object, error) { return nil, nil },
		All: func(c *behaviour.Call) ([]behaviour.Object, error) {
			all := []behaviour.Object{}
			if c.ID.Is("Microsoft.Resources/subscriptions") {
				for id := range c.List(c.ID, "Microsoft.Resources/resourceGroups") {
					all = append(all, behaviour.Object{"id": string(id), "name": id.Name(), "type": "resourcegroup"})
				}
			}
			return all, nil
		},
		// $filter=resourceType eq 'resourcegroup' asks for a kind, and there is one.
		Filter: func(*behaviour.Call, string) (func(behaviour.Object) bool, error) {
			return func(behaviour.Object) bool { return true }, nil
		},
	}
}
