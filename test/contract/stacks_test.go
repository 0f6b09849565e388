package contract

import (
	"net/http"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armdeploymentstacks"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"

	"kaz/internal/localazure/core"
)

// stackOf is a stack of public addresses with these names.
func stackOf(onUnmanage armdeploymentstacks.DeploymentStacksDeleteDetachEnum, deny armdeploymentstacks.DenySettingsMode,
	names ...string) armdeploymentstacks.DeploymentStack {
	one := template()
	var all []any
	for _, name := range names {
		all = append(all, map[string]any{
			"type": "Microsoft.Network/publicIPAddresses", "apiVersion": "2025-05-01", "name": name, "location": region,
			"sku": map[string]any{"name": "Standard"}, "properties": map[string]any{"publicIPAllocationMethod": "Static"}})
	}
	one["resources"] = all
	one["outputs"] = map[string]any{"name": map[string]any{"type": "string", "value": "[parameters('name')]"}}
	return armdeploymentstacks.DeploymentStack{Properties: &armdeploymentstacks.DeploymentStackProperties{
		Template: one, Parameters: map[string]*armdeploymentstacks.DeploymentParameter{"name": {Value: "given"}},
		ActionOnUnmanage: &armdeploymentstacks.ActionOnUnmanage{Resources: &onUnmanage},
		DenySettings:     &armdeploymentstacks.DenySettings{Mode: &deny},
	}}
}

// namesOf are the names of resources.
func namesOf[R any](all []*R, id func(*R) *string) []string {
	names := []string{}
	for _, r := range all {
		names = append(names, lastOf(*id(r)))
	}
	slices.Sort(names)
	return names
}

func lastOf(id string) string {
	for i := len(id) - 1; i >= 0; i-- {
		if id[i] == '/' {
			return id[i+1:]
		}
	}
	return id
}

// TestDeploymentStacks follows a stack. The stack makes resources, and deletes or detaches resources that leave its
// template. It keeps others from deleting its resources. The stack is deleted with or without them.
func TestDeploymentStacks(t *testing.T) {
	const (
		del, detach = armdeploymentstacks.DeploymentStacksDeleteDetachEnumDelete, armdeploymentstacks.DeploymentStacksDeleteDetachEnumDetach
		none        = armdeploymentstacks.DenySettingsModeNone
		denyDelete  = armdeploymentstacks.DenySettingsModeDenyDelete
	)
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		c := clients(a, armdeploymentstacks.NewClientFactory).NewClient()
		_, err := c.GetAtResourceGroup(a.Context(), group, "s", nil)
		a.refused(err, http.StatusNotFound, "DeploymentStackResourceNotFound")
		put := func(s armdeploymentstacks.DeploymentStack) *armdeploymentstacks.DeploymentStackProperties {
			a.Helper()
			done, err := ended(c.BeginCreateOrUpdateAtResourceGroup(a.Context(), group, "s", s, nil))
			a.must(err)
			has(a, "state", done.Properties.ProvisioningState, armdeploymentstacks.DeploymentStackProvisioningStateSucceeded)
			return done.Properties
		}
		managed := func(p *armdeploymentstacks.DeploymentStackProperties, want ...string) {
			a.Helper()
			if got := namesOf(p.Resources, func(r *armdeploymentstacks.ManagedResourceReference) *string { return r.ID }); !slices.Equal(got, want) {
				a.Errorf("managed are %v, want %v", got, want)
			}
		}
		reference := func(r *armdeploymentstacks.ResourceReference) *string { return r.ID }
		p := put(stackOf(del, none, "a", "b", "c"))
		managed(p, "a", "b", "c")
		outputs, _ := p.Outputs.(map[string]any)
		if output, _ := outputs["name"].(map[string]any); output["value"] != "given" || p.Parameters["name"].Value != "given" {
			a.Errorf("outputs %v, parameters %v", p.Outputs, p.Parameters)
		}
		made, err := a.resources.NewDeploymentsClient().Get(a.Context(), group, lastOf(*p.DeploymentID), nil)
		a.must(err)
		has(a, "deployment", made.Properties.ProvisioningState, armresources.ProvisioningStateSucceeded)

		p = put(stackOf(del, none, "a", "c"))
		managed(p, "a", "c")
		if got := namesOf(p.DeletedResources, reference); !slices.Equal(got, []string{"b"}) {
			a.Errorf("deleted are %v, want b", got)
		}
		_, err = publicAddresses().get(a, "b")
		a.refused(err, http.StatusNotFound, "ResourceNotFound")

		p = put(stackOf(detach, denyDelete, "a"))
		managed(p, "a")
		if got := namesOf(p.DetachedResources, reference); !slices.Equal(got, []string{"c"}) {
			a.Errorf("detached are %v, want c", got)
		}
		a.refused(publicAddresses().remove(a, "a"), http.StatusForbidden, "DenyAssignmentAuthorizationFailed")
		a.must(publicAddresses().remove(a, "c"))

		exported, err := c.ExportTemplateAtResourceGroup(a.Context(), group, "s", nil)
		a.must(err)
		if text, ok := exported.Template.(map[string]any); !ok || text["contentVersion"] != "1.0.0.0" {
			a.Errorf("the exported template is %v", exported.Template)
		}
		_, err = ended(c.BeginValidateStackAtResourceGroup(a.Context(), group, "s", stackOf(del, none, "x"), nil))
		a.must(err)
		all, err := every(c.NewListAtResourceGroupPager(group, nil),
			func(p armdeploymentstacks.ClientListAtResourceGroupResponse) []*armdeploymentstacks.DeploymentStack {
				return p.Value
			})
		a.must(err)
		if len(all) != 1 {
			a.Errorf("%d stacks, want 1", len(all))
		}

		put(stackOf(detach, none, "a", "kept"))
		mode := armdeploymentstacks.UnmanageActionResourceModeDelete
		a.must(gone(c.BeginDeleteAtResourceGroup(a.Context(), group, "s",
			&armdeploymentstacks.ClientBeginDeleteAtResourceGroupOptions{UnmanageActionResources: &mode})))
		_, err = publicAddresses().get(a, "kept")
		a.refused(err, http.StatusNotFound, "ResourceNotFound")
		put(stackOf(detach, denyDelete, "kept"))
		a.must(gone(c.BeginDeleteAtResourceGroup(a.Context(), group, "s", nil)))
		_, err = publicAddresses().get(a, "kept")
		a.must(err)
		a.must(publicAddresses().remove(a, "kept")) // what the stack denied ends with it
	})
}
