package contract

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
	"github.com/google/go-cmp/cmp"

	"kaz/internal/localazure/core"
)

// TestQuickstarts deploys templates as people write them, which do not follow the style of kaz's own. They have copies,
// batches, conditions, nested deployments and children, functions of the template, lambdas, and ids put together of texts.
// Their shapes are the shapes of Azure's public quickstart templates.
func TestQuickstarts(t *testing.T) {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGf1kJ0m1kQmQ2sT1oQW6CkXq0mJkT8b1yT7m0N3s5aB operator"
	for _, test := range []struct {
		name, about string
		parameters  map[string]any
		outputs     map[string]any // those that can be known
		made        []string
		absent      []string
	}{
		{name: "machine", parameters: map[string]any{"adminUsername": "operator", "adminPasswordOrKey": "Correct-Horse-1"},
			made: []string{"Microsoft.Compute/virtualMachines/linux", "Microsoft.Compute/virtualMachines/linux/extensions/GuestAttestation",
				"Microsoft.Network/virtualNetworks/net/subnets/machines"}},
		{name: "machine", about: "with a key, without an extension", parameters: map[string]any{"adminUsername": "operator",
			"adminPasswordOrKey": key, "authenticationType": "sshPublicKey", "securityType": "Standard"},
			made:   []string{"Microsoft.Compute/virtualMachines/linux"},
			absent: []string{"Microsoft.Compute/virtualMachines/linux/extensions/GuestAttestation"}},
		{name: "balanced", parameters: map[string]any{"adminPassword": "Correct-Horse-1"},
			outputs: map[string]any{"addresses": []any{"10.0.2.4", "10.0.2.5", "10.0.2.7"}},
			made:    []string{"Microsoft.Compute/virtualMachines/backend2", "Microsoft.Network/networkInterfaces/nic2"},
			absent:  []string{"Microsoft.Network/networkInterfaces/nic3"}},
		{name: "account", outputs: map[string]any{"hasKeys": true, "last": float64(3)}},
		{name: "peered", outputs: map[string]any{"names": []any{"HUB", "SPOKE1", "SPOKE2"}, "hubSubnets": float64(3), "largest": float64(3)},
			made: []string{"Microsoft.Network/virtualNetworks/hub",
				"Microsoft.Network/virtualNetworks/spoke2/virtualNetworkPeerings/to-hub",
				"Microsoft.Network/privateDnsZones/corp.example/virtualNetworkLinks/spoke1"}},
		{name: "scaleset", parameters: map[string]any{"adminPasswordOrKey": key}, outputs: map[string]any{"capacity": float64(3)},
			made: []string{"Microsoft.Compute/virtualMachineScaleSets/web", "Microsoft.Network/loadBalancers/web-lb"}},
	} {
		t.Run(strings.TrimSuffix(test.name+"/"+test.about, "/"), func(t *testing.T) {
			inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
				a.group()
				done, err := quickstart(a, test.name, test.parameters)
				a.must(err)
				has(a, "state", done.Properties.ProvisioningState, armresources.ProvisioningStateSucceeded)
				outputs, _ := done.Properties.Outputs.(map[string]any)
				for name, want := range test.outputs {
					output, _ := outputs[name].(map[string]any)
					if diff := cmp.Diff(want, output["value"]); diff != "" {
						a.Errorf("output %s: %s", name, diff)
					}
				}
				var made []string
				for _, r := range done.Properties.OutputResources {
					_, id, _ := strings.Cut(*r.ID, "/providers/")
					made = append(made, id)
				}
				for _, id := range test.made {
					if !slices.Contains(made, id) {
						a.Errorf("%s is not in %v", id, made)
					}
				}
				for _, id := range test.absent {
					if slices.Contains(made, id) {
						a.Errorf("%s is made", id)
					}
				}
			})
		})
	}
}

// quickstart deploys a template of testdata.
func quickstart(a *local, name string, values map[string]any) (armresources.DeploymentsClientCreateOrUpdateResponse, error) {
	text, err := os.ReadFile(filepath.Join("testdata/quickstart", name+".json"))
	a.must(err)
	var template map[string]any
	a.must(json.Unmarshal(text, &template))
	parameters := map[string]any{}
	for name, value := range values {
		parameters[name] = map[string]any{"value": value}
	}
	properties := armresources.DeploymentProperties{
		Mode: new(armresources.DeploymentModeIncremental), Template: template, Parameters: parameters,
	}
	return ended(a.resources.NewDeploymentsClient().BeginCreateOrUpdate(a.Context(), group, name,
		armresources.Deployment{Properties: &properties}, nil))
}

// exists reads a resource of the group by what follows providers in its id.
func exists(a *local, id string) error {
	_, err := a.resources.NewClient().GetByID(a.Context(), "/subscriptions/"+subscription+"/resourceGroups/"+group+"/providers/"+id,
		"2024-05-01", nil)
	return err
}

// TestFaultInside checks that a fault of the local Azure reaches a resource two deployments below the requested deployment.
// A later deployment succeeds.
func TestFaultInside(t *testing.T) {
	faults := []core.Fault{{Method: "PUT", Type: "Microsoft.Network/virtualNetworks", Name: "spoke1", Times: 1, Fault: "error",
		Status: 409, Code: "AllocationFailed", Message: "no room"}}
	inBubble(t, core.Options{Latency: asOnAzure, Faults: faults}, func(a *local) {
		a.group()
		_, err := quickstart(a, "peered", nil)
		if err == nil || !strings.Contains(err.Error(), "AllocationFailed") {
			a.Fatalf("the deployment ended with %v, want AllocationFailed", err)
		}
		operations, err := every(a.resources.NewDeploymentOperationsClient().NewListPager(group, "network-spoke1", nil),
			func(p armresources.DeploymentOperationsClientListResponse) []*armresources.DeploymentOperation {
				return p.Value
			})
		a.must(err)
		failed := false
		for _, o := range operations {
			failed = failed || *o.Properties.ProvisioningState == "Failed" && *o.Properties.TargetResource.ResourceName == "spoke1"
		}
		if !failed {
			a.Error("no operation of the inner deployment names the network")
		}
		if err := exists(a, "Microsoft.Network/virtualNetworks/spoke2"); err != nil {
			a.Errorf("a network beside the failed one: %v", err)
		}
		_, err = quickstart(a, "peered", nil)
		a.must(err)
	})
}
