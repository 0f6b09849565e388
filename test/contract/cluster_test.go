package contract

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"

	"kaz/internal/localazure/core"
)

// TestClusterTemplate deploys the templates of kaz cluster generate, unchanged, with Azure's own client.
func TestClusterTemplate(t *testing.T) {
	for name, address := range map[string]string{"dev": "dev-api-pip", "teams": "prod-api-pip"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../../internal/cluster/testdata/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var template map[string]any
			if err := json.Unmarshal(text, &template); err != nil {
				t.Fatal(err)
			}
			parameters := map[string]any{"seedSecrets": map[string]any{"value": true}}
			for _, secret := range []string{"pkiCA", "pkiEtcdCA", "pkiFrontProxyCA", "pkiServiceAccount", "bootstrapToken"} {
				parameters[secret] = map[string]any{"value": "secret"}
			}
			inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
				a.group()
				c := a.resources.NewDeploymentsClient()
				properties := armresources.DeploymentProperties{
					Mode: new(armresources.DeploymentModeIncremental), Template: template, Parameters: parameters,
				}
				done, err := ended(c.BeginCreateOrUpdate(a.Context(), group, "cluster", armresources.Deployment{Properties: &properties}, nil))
				a.must(err)
				has(a, "state", done.Properties.ProvisioningState, armresources.ProvisioningStateSucceeded)
				_, err = publicAddresses().get(a, address)
				a.must(err)
			})
		})
	}
}
