package resources_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/authorization"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/compute"
	"kaz/internal/localazure/behaviour/identity"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/behaviour/vault"
	"kaz/internal/localazure/core"
)

const (
	foreignGroup    = "~~/resourceGroups/foreign"
	foreignAccount  = foreignGroup + "/providers/Microsoft.Storage/storageAccounts/foreignaccount"
	foreignVault    = foreignGroup + "/providers/Microsoft.KeyVault/vaults/foreignvault"
	foreignIdentity = foreignGroup + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i"
	foreignNetwork  = foreignGroup + "/providers/Microsoft.Network/virtualNetworks/n"
	foreignSubnet   = foreignNetwork + "/subnets/s"
	foreignDisk     = foreignGroup + "/providers/Microsoft.Compute/disks/d"
)

// full returns a path or a body with the ids that ~~ and ~ stand for.
func full(text string) string {
	return strings.NewReplacer("~~", behaviourtest.Subscription, "~/", behaviourtest.Group+"/").Replace(text)
}

// startCallers starts an Azure with access control. The token "guest" is of a principal whose role assignments are in the group
// alone, with some actions. There is another group, to which it has no right.
func startCallers(t *testing.T, actions string) *behaviourtest.Azure {
	t.Helper()
	a := behaviourtest.StartWith(t, callerOptions())
	letGuest(a, actions)
	return a
}

// guest is the object id of the principal with the token "guest".
const guest = "99999999-0000-0000-0000-000000000001"

func callerOptions() core.Options {
	return core.Options{
		Providers: []behaviour.Provider{resources.Provider(), identity.Provider(), authorization.Provider(), storage.Provider(),
			vault.Provider(), network.Provider(), compute.Provider()},
		AccessControl: true, Authenticator: people{"owner": {Owner: true}, "guest": {ObjectID: guest}},
	}
}

// letGuest assigns a role with some actions at the group, and makes another group.
func letGuest(a *behaviourtest.Azure, actions string) {
	a.Helper()
	const role = "/providers/Microsoft.Authorization/roleDefinitions/11111111-2222-3333-4444-555555555555"
	a.Run(
		exchange{Do: "PUT ~~" + role, Status: 201,
			Body: `{"properties":{"roleName":"guest","assignableScopes":["/"],"permissions":[{"actions":[` + actions + `]}]}}`},
		exchange{Do: "PUT ~/providers/Microsoft.Authorization/roleAssignments/aaaaaaaa-0000-0000-0000-000000000001", Status: 201,
			Body: full(`{"properties":{"roleDefinitionId":"~~` + role + `","principalId":"` + guest + `"}}`)},
		exchange{Do: "PUT " + foreignGroup, Status: 201, Body: `{"location":"eastus"}`},
	)
}

const (
	everything = `"*"`
	deploys    = `"Microsoft.Resources/deployments/*","Microsoft.Resources/deploymentStacks/*",
		"Microsoft.ManagedIdentity/userAssignedIdentities/write","Microsoft.ManagedIdentity/userAssignedIdentities/read"`
)

// TestATemplateReadsWithTheRightsOfItsCaller deploys templates that read what the caller may not read: keys, properties and secrets of
// another group, at once and in a nested deployment.
func TestATemplateReadsWithTheRightsOfItsCaller(t *testing.T) {
	a := startCallers(t, everything)
	a.Run(
		exchange{Do: "PUT " + foreignAccount, Status: 202, Body: `{"location":"eastus","sku":{"name":"Standard_LRS"},"kind":"StorageV2"}`},
		exchange{Do: "PUT " + foreignVault,
			Body: `{"location":"eastus","properties":{"enableRbacAuthorization":true,"tenantId":"` + core.DefaultTenant + `",
				"sku":{"family":"A","name":"standard"},				"enabledForTemplateDeployment":true}}`},
		exchange{Do: "PUT " + foreignVault + "/secrets/s", Body: `{"properties":{"value":"hidden"}}`},
	)
	outputs := func(expression string) string {
		return `{"resources":[],"outputs":{"o":{"type":"object","value":"[` + full(expression) + `]"}}}`
	}
	nest := func(template string) string {
		return `{"resources":[{"type":"Microsoft.Resources/deployments","apiVersion":"2024-03-01","name":"inner","properties":{
			"mode":"Incremental","expressionEvaluationOptions":{"scope":"inner"},"template":` + whole(template) + `}}]}`
	}
	for name, template := range map[string]string{
		"listKeys":         outputs("listKeys('" + foreignAccount + "', '2024-01-01')"),
		"reference":        outputs("reference('" + foreignAccount + "', '2024-01-01')"),
		"nested listKeys":  nest(outputs("listKeys('" + foreignAccount + "', '2024-01-01')")),
		"nested reference": nest(outputs("reference('" + foreignVault + "', '2024-01-01')")),
	} {
		a.Token = "guest"
		status, header, reply := a.Send("PUT", deployment, of(template, ""))
		if status == 201 || status == 200 {
			status, _, reply = a.Send("GET", header.Get("Azure-AsyncOperation"), "")
		}
		if text := behaviourtest.Text(reply); !strings.Contains(text, "AuthorizationFailed") {
			t.Errorf("%s: %d %s, want AuthorizationFailed", name, status, text)
		}
		if got := a.Request("POST", deployment+"/whatIf", of(template, "")); strings.Contains(behaviourtest.Text(got.Body), "hidden") {
			t.Errorf("what-if of %s: %v", name, got.Body)
		}
		a.Token = "owner"
		ended(a, of(template, ""), "Succeeded")
	}
	secret := of(`{"parameters":{"p":{"type":"string"}},"resources":[],"outputs":{"o":{"type":"string","value":"[parameters('p')]"}}}`,
		full(`{"p":{"reference":{"keyVault":{"id":"`+foreignVault+`"},"secretName":"s"}}}`))
	a.Token = "guest"
	for _, what := range []string{"PUT " + deployment, "POST " + deployment + "/validate"} {
		a.Run(exchange{Do: what, Body: secret, Status: 403, Code: "KeyVaultParameterReferenceAuthorizationFailed"})
	}
	a.Token = "owner"
	if done := ended(a, secret, "Succeeded"); behaviourtest.At(done, "properties.outputs.o.value") != "hidden" {
		t.Errorf("outputs: %v", done)
	}
}

// TestADeploymentLinksWithTheRightsOfItsCaller deploys resources that use what the caller may not use.
func TestADeploymentLinksWithTheRightsOfItsCaller(t *testing.T) {
	a := startCallers(t, everything)
	a.Run(
		exchange{Do: "PUT " + foreignIdentity, Status: 201, Body: `{"location":"eastus"}`},
		exchange{Do: "PUT " + foreignNetwork, Status: 201, Body: `{"location":"eastus","properties":{
			"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`},
	)
	const (
		subnetOf = `"ipConfigurations":[{"name":"c","properties":{"subnet":{"id":"` + foreignSubnet + `"}}}]`
		machine  = `"type":"Microsoft.Compute/virtualMachines","apiVersion":"2024-07-01","name":"vm","location":"eastus"`
	)
	for name, c := range map[string]struct{ resource, action string }{
		"interface": {`{"type":"Microsoft.Network/networkInterfaces","apiVersion":"2024-05-01","name":"nic","location":"eastus",
			"properties":{` + subnetOf + `}}`, "Microsoft.Network/virtualNetworks/subnets/join/action"},
		"interface of a machine": {`{` + machine + `,"properties":{"networkProfile":{"networkApiVersion":"2022-11-01",
			"networkInterfaceConfigurations":[{"name":"nic","properties":{"primary":true,` + subnetOf + `}}]},
			"hardwareProfile":{"vmSize":"Standard_D2s_v3"},
			"osProfile":{"computerName":"vm","adminUsername":"u","adminPassword":"Passw0rd!234"},
			"storageProfile":{"osDisk":{"createOption":"FromImage"},"imageReference":{"publisher":"Canonical",
				"offer":"ubuntu-24_04-lts","sku":"server","version":"latest"}}}}`, "Microsoft.Network/virtualNetworks/subnets/join/action"},
		"identity": {`{"type":"Microsoft.Storage/storageAccounts","apiVersion":"2024-01-01","name":"mineaccount","location":"eastus",
			"sku":{"name":"Standard_LRS"},"kind":"StorageV2","identity":{"type":"UserAssigned",
			"userAssignedIdentities":{"` + foreignIdentity + `":{}}}}`, "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"},
	} {
		a.Token = "guest"
		status, header, reply := a.Send("PUT", deployment, of(full(`{"resources":[`+c.resource+`]}`), ""))
		if status != 201 && status != 200 {
			t.Errorf("%s: %d %v", name, status, reply)
			continue
		}
		_, _, reply = a.Send("GET", header.Get("Azure-AsyncOperation"), "")
		if text := behaviourtest.Text(reply); !strings.Contains(text, "LinkedAuthorizationFailed") || !strings.Contains(text, c.action) {
			t.Errorf("%s: %s, want LinkedAuthorizationFailed with %s", name, text, c.action)
		}
	}
}

// TestARequestLinksWithTheRightsOfItsCaller sends requests that name what the caller may not use.
func TestARequestLinksWithTheRightsOfItsCaller(t *testing.T) {
	a := startCallers(t, everything)
	const disk = `{"location":"eastus","sku":{"name":"Standard_LRS"},"properties":{"creationData":{"createOption":"Empty"},"diskSizeGB":4}}`
	const (
		groupNetwork = "~/providers/Microsoft.Network/virtualNetworks/n"
		nic          = "~/providers/Microsoft.Network/networkInterfaces/nic"
		machine      = "~/providers/Microsoft.Compute/virtualMachines/vm"
		attach       = machine + "/attachDetachDataDisks"
	)
	copyOf := full(`{"location":"eastus","properties":{"creationData":{"createOption":"Copy",
		"sourceResourceId":"` + foreignDisk + `"}}}`)
	body := func(identity, disks string) string {
		return full(`{"location":"eastus"` + identity + `,"properties":{"hardwareProfile":{"vmSize":"Standard_D2s_v3"},
			"networkProfile":{"networkInterfaces":[{"id":"` + nic + `"}]},
			"osProfile":{"computerName":"vm","adminUsername":"u","adminPassword":"Passw0rd!234"},
			"storageProfile":{"osDisk":{"createOption":"FromImage"},"dataDisks":[` + disks + `],"imageReference":{"publisher":"Canonical",
				"offer":"ubuntu-24_04-lts","sku":"server","version":"latest"}}}}`)
	}
	a.Run(
		exchange{Do: "PUT " + foreignIdentity, Status: 201, Body: `{"location":"eastus"}`},
		exchange{Do: "PUT " + foreignDisk, Status: 202, Body: disk},
		exchange{Do: "PUT " + groupNetwork, Status: 201, Body: `{"location":"eastus","properties":{
			"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`},
	)
	a.Token = "guest"
	a.Run(
		exchange{Do: "PUT " + nic, Status: 201, Body: full(`{"location":"eastus","properties":{"ipConfigurations":[{"name":"c",
			"properties":{"subnet":{"id":"` + groupNetwork + `/subnets/s"}}}]}}`)},
		exchange{Do: "PUT " + machine, Status: 201, Body: body("", "")},
		exchange{Do: "PUT " + machine, Status: 403, Code: "LinkedAuthorizationFailed",
			Body: body("", `{"lun":0,"createOption":"Attach","managedDisk":{"id":"`+foreignDisk+`"}}`)},
		exchange{Do: "PUT " + machine, Status: 403, Code: "LinkedAuthorizationFailed",
			Body: body(`,"identity":{"type":"UserAssigned","userAssignedIdentities":{"`+foreignIdentity+`":{}}}`, "")},
		exchange{Do: "PATCH " + machine, Status: 403, Code: "LinkedAuthorizationFailed",
			Body: full(`{"identity":{"type":"UserAssigned","userAssignedIdentities":{"` + foreignIdentity + `":{}}}}`)},
		exchange{Do: "POST " + attach, Status: 403, Code: "LinkedAuthorizationFailed",
			Body: full(`{"dataDisksToAttach":[{"diskId":"` + foreignDisk + `","lun":0}]}`)},
		exchange{Do: "PUT ~/providers/Microsoft.Compute/snapshots/s", Status: 403, Code: "LinkedAuthorizationFailed",
			Body: copyOf},
		exchange{Do: "PUT ~/providers/Microsoft.Compute/disks/copy", Status: 403, Code: "LinkedAuthorizationFailed",
			Body: copyOf},
	)
	a.Token = "owner"
	a.Run(exchange{Do: "POST " + attach, Body: full(`{"dataDisksToAttach":[{"diskId":"` + foreignDisk + `","lun":0}]}`)})
}

// TestRemovalsAreMadeWithTheRightsOfTheCaller removes resources through what the caller may write.
func TestRemovalsAreMadeWithTheRightsOfTheCaller(t *testing.T) {
	a := startCallers(t, deploys)
	const kept = identities + "/kept"
	one := stacksPath + "/one"
	stack(a, one, stackBody("delete", "none", identityIn("kept", "")), "Succeeded")
	a.Token = "guest"
	complete := strings.Replace(of(`{"resources":[]}`, ""), "Incremental", "Complete", 1)
	status, header, reply := a.Send("PUT", deployment, complete)
	if status == 201 {
		_, _, reply = a.Send("GET", header.Get("Azure-AsyncOperation"), "")
	}
	if text := behaviourtest.Text(reply); !strings.Contains(text, "Microsoft.ManagedIdentity/userAssignedIdentities/delete") {
		t.Errorf("Complete: %s", text)
	}
	a.Run(exchange{Do: "GET " + kept})
	stack(a, one, stackBody("delete", "none"), "DeploymentStackDeleteResourcesFailed")
	a.Run(exchange{Do: "GET " + kept})
	_, header, _ = a.Send("DELETE", one+"?unmanageAction.Resources=delete", "")
	a.Run(exchange{Do: "GET " + header.Get("Azure-AsyncOperation"), Has: has{"status": "failed"},
		Code: "DeploymentStackDeleteResourcesFailed"}, exchange{Do: "GET " + kept})
	a.Run(exchange{Do: "PUT " + stacksPath + "/elsewhere", Status: 403, Code: "AuthorizationFailed",
		Body: strings.Replace(stackBody("detach", "none"), `"template"`, full(`"deploymentScope":"`+foreignGroup+`","template"`), 1)})
	a.Token = "owner"
	a.Run(exchange{Do: "PUT " + one, Status: 200, Body: stackBody("delete", "none", identityIn("kept", ""))},
		exchange{Do: "DELETE " + one + "?unmanageAction.Resources=delete", Status: 202}, exchange{Do: "GET " + kept, Status: 404,
			Code: "ResourceNotFound"})
}

// TestDenySettingsNeedARight writes a stack with deny settings without the right to manage them.
func TestDenySettingsNeedARight(t *testing.T) {
	a := startCallers(t, `"Microsoft.Resources/deployments/*","Microsoft.Resources/deploymentStacks/write"`)
	a.Token = "guest"
	a.Run(exchange{Do: "PUT " + stacksPath + "/one", Status: 403, Code: "AuthorizationFailed", Body: stackBody("detach", "denyDelete")},
		exchange{Do: "PUT " + stacksPath + "/one", Status: 201, Body: stackBody("detach", "none")})
}

// TestAMoveNeedsRightsToBothGroups moves a resource into a group to which the caller has no right.
func TestAMoveNeedsRightsToBothGroups(t *testing.T) {
	a := startCallers(t, everything)
	a.Run(exchange{Do: "PUT " + identities + "/i", Status: 201, Body: `{"location":"eastus"}`})
	body := full(`{"resources":["` + identities + `/i"],"targetResourceGroup":"` + foreignGroup + `"}`)
	a.Token = "guest"
	a.Run(
		exchange{Do: "POST ~/moveResources", Status: 403, Code: "LinkedAuthorizationFailed", Body: body},
		exchange{Do: "POST ~/validateMoveResources", Status: 403, Code: "LinkedAuthorizationFailed", Body: body},
	)
	a.Token = "owner"
	for scope, code := range map[string]string{foreignGroup: "ScopeLocked", identities + "/i": "ScopeLocked"} {
		lock := scope + "/providers/Microsoft.Authorization/locks/l"
		a.Run(exchange{Do: "PUT " + lock, Status: 201, Body: `{"properties":{"level":"ReadOnly"}}`},
			exchange{Do: "POST ~/moveResources", Status: 409, Code: code, Body: body},
			exchange{Do: "DELETE " + lock})
	}
	a.Run(exchange{Do: "POST ~/moveResources", Status: 202, Body: body}, exchange{Do: "GET " + foreignIdentity})
}

// TestLocksHoldForWhatIsMadeForACaller writes and removes what is locked through deployments and stacks.
func TestLocksHoldForWhatIsMadeForACaller(t *testing.T) {
	a := startCallers(t, everything)
	one := stacksPath + "/one"
	stack(a, one, stackBody("delete", "none", identityIn("kept", "")), "Succeeded")
	const kept = identities + "/kept"
	lock := kept + "/providers/Microsoft.Authorization/locks/l"
	a.Run(exchange{Do: "PUT " + lock, Status: 201, Body: `{"properties":{"level":"CanNotDelete"}}`})
	a.Token = "guest"
	fails := func(body, code string) {
		t.Helper()
		status, header, reply := a.Send("PUT", deployment, body)
		if status == 201 || status == 200 {
			_, _, reply = a.Send("GET", header.Get("Azure-AsyncOperation"), "")
		}
		if text := behaviourtest.Text(reply); !strings.Contains(text, code) {
			t.Errorf("deployment: %s, want %s", text, code)
		}
	}
	fails(strings.Replace(of(`{"resources":[]}`, ""), "Incremental", "Complete", 1), "ScopeLocked")
	stack(a, one, stackBody("delete", "none"), "DeploymentStackDeleteResourcesFailed")
	a.Token = "owner"
	a.Run(exchange{Do: "GET " + kept}, exchange{Do: "PUT " + lock, Body: `{"properties":{"level":"ReadOnly"}}`})
	a.Token = "guest"
	fails(of(`{"resources":[`+identityIn("kept", "")+`]}`, ""), "ScopeLocked")
}

// TestARestartKeepsTheCallerOfADeployment ends a deployment after a restart. It has the rights of the caller who began it.
func TestARestartKeepsTheCallerOfADeployment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := callerOptions()
		o.Latency = 1
		first := behaviourtest.StartWith(t, o)
		letGuest(first, deploys)
		first.Run(exchange{Do: "PUT " + identities + "/kept", Status: 201, Body: `{"location":"eastus"}`})
		first.Token = "guest"
		complete := strings.Replace(of(`{"resources":[`+identityIn("made", "")+`]}`, ""), "Incremental", "Complete", 1)
		first.Run(exchange{Do: "PUT " + deployment, Body: complete, Status: 201})
		var state bytes.Buffer
		if err := first.Save(&state); err != nil {
			t.Fatal(err)
		}
		second, err := core.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := second.Load(&state); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		a := behaviourtest.Connect(t, second)
		a.Token = "owner"
		a.Run(exchange{Do: "GET " + identities + "/made"}, exchange{Do: "GET " + identities + "/kept"},
			exchange{Do: "GET " + deployment, Has: has{"properties.provisioningState": "Failed",
				"properties.error.details.0.code": "AuthorizationFailed"}})
	})
}

// TestAnOperationWithoutACaller ends operations of an older state file, which has no callers. They have no rights, whatever they would
// do, and their errors say so.
func TestAnOperationWithoutACaller(t *testing.T) {
	nic := `{"type":"Microsoft.Network/networkInterfaces","apiVersion":"2024-05-01","name":"nic","location":"eastus","properties":{
		"ipConfigurations":[{"name":"c","properties":{"subnet":{"id":"` + full(foreignSubnet) + `"}}}]}}`
	for name, template := range map[string]string{
		"write":  `{"resources":[` + identityIn("made", "") + `]}`,
		"link":   `{"resources":[` + nic + `]}`,
		"nested": `{"resources":[` + nested("inner", "", `{"resources":[`+nic+`]}`) + `]}`,
		"read":   full(`{"resources":[],"outputs":{"o":{"type":"object","value":"[reference('` + foreignNetwork + `', '2024-05-01')]"}}}`),
		"keys":   full(`{"resources":[],"outputs":{"o":{"type":"object","value":"[listKeys('` + foreignAccount + `', '2024-01-01')]"}}}`),
		"caller": `{"resources":[],"outputs":{"o":{"type":"object","value":"[deployer()]"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := callerOptions()
				o.Latency = 1
				var log strings.Builder
				o.Log = slog.New(slog.NewTextHandler(&log, nil))
				first := behaviourtest.StartWith(t, o)
				letGuest(first, everything)
				first.Run(
					exchange{Do: "PUT " + foreignNetwork, Status: 201, Body: `{"location":"eastus","properties":{
						"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`},
					exchange{Do: "PUT " + foreignAccount, Status: 202, Body: `{"location":"eastus","sku":{"name":"Standard_LRS"},"kind":"StorageV2"}`},
				)
				<-time.After(time.Hour)
				first.Run(exchange{Do: "PUT " + deployment, Body: of(template, ""), Status: 201})
				var state bytes.Buffer
				if err := first.Save(&state); err != nil {
					t.Fatal(err)
				}
				second, err := core.New(o)
				if err != nil {
					t.Fatal(err)
				}
				if err := second.Load(bytes.NewReader(withoutCallers(t, state.Bytes()))); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Hour)
				a := behaviourtest.Connect(t, second)
				a.Token = "owner"
				got := a.Run(exchange{Do: "GET " + deployment})
				text := behaviourtest.Text(got)
				if behaviour.Text(got, "properties.provisioningState") != "Failed" || strings.Contains(text, "InternalServerError") {
					t.Errorf("%s", text)
				}
				if name != "caller" && !strings.Contains(text, "AuthorizationFailed") {
					t.Errorf("want AuthorizationFailed: %s", text)
				}
				if strings.Contains(log.String(), "panic") {
					t.Errorf("%.2000s", log.String())
				}
			})
		})
	}
}

// withoutCallers returns a state file without the callers of its operations.
func withoutCallers(t *testing.T, text []byte) []byte {
	t.Helper()
	var file map[string]json.RawMessage
	var operations []map[string]json.RawMessage
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(file["operations"], &operations); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, o := range operations {
		_, is := o["caller"]
		found = found || is
		delete(o, "caller")
	}
	if !found {
		t.Fatal("no operation in the state file has a caller")
	}
	var err error
	if file["operations"], err = json.Marshal(operations); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	return text
}
