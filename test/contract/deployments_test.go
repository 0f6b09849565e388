package contract

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"

	"kaz/internal/localazure/core"
)

func template() map[string]any {
	return map[string]any{
		"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion": "1.0.0.0",
		"parameters":     map[string]any{"name": map[string]any{"type": "string"}},
		"resources": []any{map[string]any{
			"type": "Microsoft.Network/publicIPAddresses", "apiVersion": "2025-05-01", "name": "[parameters('name')]",
			"location": "[resourceGroup().location]", "sku": map[string]any{"name": "Standard"},
			"properties": map[string]any{"publicIPAllocationMethod": "Static"}}},
		"outputs": map[string]any{"id": map[string]any{"type": "string",
			"value": "[resourceId('Microsoft.Network/publicIPAddresses', parameters('name'))]"}},
	}
}

func deployment() armresources.Deployment {
	return armresources.Deployment{Properties: &armresources.DeploymentProperties{
		Mode: new(armresources.DeploymentModeIncremental), Template: template(),
		Parameters: map[string]any{"name": map[string]any{"value": "made"}}}}
}

func TestDeployments(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		c := a.resources.NewDeploymentsClient()
		_, err := c.Get(a.Context(), group, "d", nil)
		a.refused(err, http.StatusNotFound, "DeploymentNotFound")
		done, err := ended(c.BeginCreateOrUpdate(a.Context(), group, "d", deployment(), nil))
		a.must(err)
		has(a, "state", done.Properties.ProvisioningState, armresources.ProvisioningStateSucceeded)
		id := string(networkID("publicIPAddresses", "made"))
		outputs, _ := done.Properties.Outputs.(map[string]any)
		output, _ := outputs["id"].(map[string]any)
		if output["value"] != id {
			a.Errorf("outputs: %v", outputs)
		}
		_, err = publicAddresses().get(a, "made")
		a.must(err)

		steps := a.resources.NewDeploymentOperationsClient()
		operations, err := every(steps.NewListPager(group, "d", nil),
			func(p armresources.DeploymentOperationsClientListResponse) []*armresources.DeploymentOperation {
				return p.Value
			})
		a.must(err)
		if len(operations) == 0 {
			a.Fatal("no operations of the deployment")
		}
		_, err = steps.Get(a.Context(), group, "d", *operations[0].OperationID, nil)
		a.must(err)
		_, err = steps.Get(a.Context(), group, "d", "none", nil)
		a.refused(err, http.StatusNotFound, "DeploymentOperationNotFound")

		all, err := every(c.NewListByResourceGroupPager(group, nil),
			func(p armresources.DeploymentsClientListByResourceGroupResponse) []*armresources.DeploymentExtended {
				return p.Value
			})
		a.must(err)
		if len(all) != 1 {
			a.Errorf("%d deployments, want 1", len(all))
		}
		a.must(gone(c.BeginDelete(a.Context(), group, "d", nil)))
		_, err = publicAddresses().get(a, "made")
		a.must(err) // what was deployed stays
	})
}
