package pim_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/authorization"
	"kaz/internal/localazure/behaviour/authorization/pim"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/core"
)

type (
	exchange = behaviourtest.Exchange
	has      = map[string]any
)

const (
	types       = "/providers/Microsoft.Authorization/"
	contributor = "b24988ac-6180-42a0-ab88-20f7382dd24c"
	alice       = "99999999-0000-0000-0000-000000000001"
	first       = "aaaaaaaa-0000-0000-0000-000000000001"
	second      = "aaaaaaaa-0000-0000-0000-000000000002"
)

func start(t *testing.T) *behaviourtest.Azure {
	return behaviourtest.Start(t, resources.Provider(), authorization.Provider(), pim.Provider())
}

func request(kind, more string) string {
	return `{"properties":{"requestType":"` + kind + `","principalId":"` + alice + `","roleDefinitionId":"` + behaviourtest.Subscription +
		types + "roleDefinitions/" + contributor + `"` + more + `}}`
}

// The names of a user that the directory has are shown, and those of others are not.
func TestNamesOfUsers(t *testing.T) {
	a := behaviourtest.StartWith(t, core.Options{
		Providers: []behaviour.Provider{resources.Provider(), authorization.Provider(), pim.Provider()},
		Users:     []behaviour.User{{ObjectID: strings.ToUpper(alice), Name: "Alice", Email: "alice@example.org"}},
	})
	requests, principal := "~"+types+"roleEligibilityScheduleRequests/", "properties.expandedProperties.principal."
	other := strings.Replace(request("AdminAssign", `,"scheduleInfo":{}`), alice, second, 1)
	a.Run(
		exchange{Do: "PUT " + requests + first, Status: 201, Body: request("AdminAssign", `,"scheduleInfo":{}`),
			Has: has{principal + "displayName": "Alice", principal + "email": "alice@example.org", principal + "id": alice}},
		exchange{Do: "PUT " + requests + second, Status: 201, Body: other,
			Has: has{principal + "id": second, principal + "displayName": nil, principal + "email": nil}},
	)
}

// A request for a time makes a schedule, which has an instance until it expires. A removal ends it at once.
func TestSchedulesFollowFromRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t)
		requests, schedules := "~"+types+"roleEligibilityScheduleRequests/", "~"+types+"roleEligibilitySchedules"
		instances := "~" + types + "roleEligibilityScheduleInstances"
		a.Run(
			exchange{Do: "PUT " + requests + first, Status: 201,
				Body: request("AdminAssign", `,"scheduleInfo":{"expiration":{"type":"AfterDuration","duration":"PT8H"}}`),
				Has: has{"properties.status": "Provisioned", "properties.scope": behaviourtest.Group,
					"properties.expandedProperties.roleDefinition.displayName": "Contributor",
					"properties.expandedProperties.scope.type":                 "resourcegroup",
					"properties.targetRoleEligibilityScheduleId":               first}},
			exchange{Do: "GET " + schedules, Has: has{"value.#": 1, "value.0.name": first, "value.0.properties.memberType": "Direct",
				"value.0.properties.roleEligibilityScheduleRequestId": behaviourtest.Group + types + "roleEligibilityScheduleRequests/" + first}},
			exchange{Do: "GET " + schedules + "/" + first, Has: has{"properties.principalId": alice}},
			exchange{Do: "GET " + schedules + "/" + second, Status: 404, Code: "ResourceNotFound"},
			exchange{Do: "GET " + schedules + "?$filter=principalId eq '" + second + "'", Has: has{"value.#": 0}},
			exchange{Do: "GET " + instances, Has: has{"value.#": 1}},
			exchange{Do: "GET ~" + types + "roleAssignmentSchedules", Has: has{"value.#": 0}},
		)
		<-time.After(8 * time.Hour) // the clock of the bubble
		a.Run(
			exchange{Do: "GET " + instances, Has: has{"value.#": 0}},
			exchange{Do: "GET " + schedules, Has: has{"value.#": 1}},
			exchange{Do: "PUT " + requests + second, Body: request("AdminRemove", `,"scheduleInfo":{}`), Status: 201,
				Has: has{"properties.status": "Revoked"}},
			exchange{Do: "GET " + schedules, Has: has{"value.#": 0}},
		)
	})
}

func TestRequestsThatAreRefusedOrOnlyTried(t *testing.T) {
	a := start(t)
	requests := "~~" + types + "roleAssignmentScheduleRequests/"
	a.Run(
		exchange{Do: "PUT " + requests + first, Body: request("Wish", ""), Status: 400, Code: "InvalidRequestType"},
		exchange{Do: "PUT " + requests + first, Body: `{"properties":{"requestType":"AdminAssign"}}`, Status: 400, Code: "InvalidPrincipalId"},
		exchange{Do: "PUT " + requests + first, Status: 404, Code: "RoleDefinitionDoesNotExist",
			Body: `{"properties":{"requestType":"AdminAssign","principalId":"` + alice + `","roleDefinitionId":"/x"}}`},
		exchange{Do: "POST " + requests + first + "/validate", Body: request("AdminAssign", ""),
			Has: has{"name": first, "properties.status": "Provisioned"}},
		exchange{Do: "GET " + requests + first, Status: 404, Code: "ResourceNotFound"},
		exchange{Do: "PUT " + requests + first, Body: request("AdminAssign", `,"scheduleInfo":{}`), Status: 201},
		exchange{Do: "GET ~~" + types + "roleAssignmentScheduleInstances", Has: has{"value.#": 1, "value.0.properties.assignmentType": "Assigned"}},
		exchange{Do: "POST " + requests + first + "/cancel"},
		exchange{Do: "GET ~~" + types + "roleAssignmentSchedules", Has: has{"value.#": 0}},
	)
}

// Each role has a policy at each scope. A PATCH replaces rules by their ids, and a DELETE takes the changes back.
func TestPoliciesOfRoles(t *testing.T) {
	a := start(t)
	assignments := a.Run(exchange{Do: "GET ~~" + types + "roleManagementPolicyAssignments?$filter=roleDefinitionId eq '" +
		behaviourtest.Subscription + types + "roleDefinitions/" + contributor + "'", Has: has{"value.#": 1}})
	assigned := behaviour.Objects(assignments, "value")[0]
	policy, assignment := behaviour.Text(assigned, "properties.policyId"), behaviour.Text(assigned, "id")
	const rule = "Expiration_EndUser_Assignment"
	a.Run(
		exchange{Do: "GET " + policy, Has: has{"properties.rules.#": 17, "properties.rules.13.id": rule,
			"properties.effectiveRules.13.maximumDuration": "PT8H"}},
		exchange{Do: "PUT " + policy, Body: `{"properties":{}}`, Status: 405, Code: "MethodNotAllowed"},
		exchange{Do: "PATCH " + policy, Body: `{"properties":{"rules":[{"id":"none"}]}}`, Status: 400, Code: "InvalidPolicyRule"},
		exchange{Do: "PATCH " + policy, Body: `{"properties":{"rules":[{"id":"` + rule + `","ruleType":"RoleManagementPolicyExpirationRule",
			"isExpirationRequired":true,"maximumDuration":"PT2H"}]}}`, Has: has{"properties.effectiveRules.13.maximumDuration": "PT2H"}},
		exchange{Do: "GET " + assignment, Has: has{"properties.effectiveRules.13.maximumDuration": "PT2H"}},
		exchange{Do: "DELETE " + policy},
		exchange{Do: "GET " + policy, Has: has{"properties.rules.13.maximumDuration": "PT8H"}},
		exchange{Do: "GET " + policy[:len(policy)-1] + "x", Status: 404, Code: "ResourceNotFound"},
	)
}

func TestWhatCanHaveRolesOfItsOwn(t *testing.T) {
	start(t).Run(exchange{Do: "GET ~~" + types + "eligibleChildResources?$filter=resourceType eq 'resourcegroup'",
		Has: has{"value.#": 1, "value.0.name": "rg", "value.0.type": "resourcegroup"}})
}
