package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"

	"kaz/internal/localazure/core"
)

func TestResourceGroups(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		c := a.resources.NewResourceGroupsClient()
		there := func(name string, want bool) {
			a.Helper()
			got, err := c.CheckExistence(a.Context(), name, nil)
			a.must(err)
			if got.Success != want {
				a.Errorf("group %s is there: %v, want %v", name, got.Success, want)
			}
		}
		there("one", false)
		_, err := c.Get(a.Context(), "one", nil)
		a.refused(err, http.StatusNotFound, "ResourceGroupNotFound")
		for _, name := range []string{"one", "Two"} {
			made, err := c.CreateOrUpdate(a.Context(), name, armresources.ResourceGroup{Location: new("East US")}, nil)
			a.must(err)
			has(a, "location", made.Location, region)
			there(strings.ToUpper(name), true)
		}
		updated, err := c.Update(a.Context(), "one", armresources.ResourceGroupPatchable{Tags: tags("patch")}, nil)
		a.must(err)
		if !tagged(updated.Tags, "patch") {
			a.Errorf("tags after the patch: %v", updated.Tags)
		}
		all, err := every(c.NewListPager(nil),
			func(p armresources.ResourceGroupsClientListResponse) []*armresources.ResourceGroup { return p.Value })
		a.must(err)
		if len(all) != 2 {
			a.Errorf("%d groups, want 2", len(all))
		}
		_, err = c.CreateOrUpdate(a.Context(), "one", armresources.ResourceGroup{Location: new("westus")}, nil)
		a.refused(err, http.StatusConflict, "InvalidResourceGroupLocation")
		_, err = c.CreateOrUpdate(a.Context(), "three.", armresources.ResourceGroup{Location: new(region)}, nil)
		a.refused(err, http.StatusBadRequest, "InvalidResourceGroup")
		a.must(gone(c.BeginDelete(a.Context(), "TWO", nil)))
		there("Two", false)
	})
}

// Every resource can be reached without knowing its type.
func TestGenericResources(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		c := a.resources.NewClient()
		const version = "2025-05-01"
		table := string(networkID("routeTables", "rt"))
		made, err := ended(c.BeginCreateOrUpdateByID(a.Context(), table, version,
			armresources.GenericResource{Location: new(region), Properties: map[string]any{}}, nil))
		a.must(err)
		has(a, "type", made.Type, "Microsoft.Network/routeTables")
		got, err := c.GetByID(a.Context(), table, version, nil)
		a.must(err)
		has(a, "id", got.ID, table)
		typed, err := routeTables().get(a, "rt")
		a.must(err)
		has(a, "id through its own client", typed.ID, table)
		a.must(gone(c.BeginDeleteByID(a.Context(), table, version, nil)))
		_, err = c.GetByID(a.Context(), table, version, nil)
		a.refused(err, http.StatusNotFound, "ResourceNotFound")
	})
}

// TestDocumentsOfOtherProviders checks types that the local Azure only stores. The SDKs create, read and delete such a
// resource. They poll with Azure-AsyncOperation, with a Location, or not at all.
func TestDocumentsOfOtherProviders(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.group()
		c := a.resources.NewClient()
		for _, test := range []struct {
			kind, version string
			properties    map[string]any
		}{
			{"Microsoft.OperationalInsights/workspaces", "2022-10-01", map[string]any{}},
			{"Microsoft.Cache/redis", "2024-11-01", map[string]any{}},
			{"Microsoft.Web/serverfarms", "2023-01-01", map[string]any{}},
			{"Microsoft.Network/networkManagers", "2024-05-01", map[string]any{
				"networkManagerScopes": map[string]any{"subscriptions": []any{"/subscriptions/" + subscription}}}},
		} {
			id := "/subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/" + test.kind + "/thing"
			made, err := ended(c.BeginCreateOrUpdateByID(a.Context(), id, test.version, armresources.GenericResource{
				Location: new(region), Properties: test.properties, Tags: tags("judge")}, nil))
			a.must(err)
			has(a, "type", made.Type, test.kind)
			got, err := c.GetByID(a.Context(), id, test.version, nil)
			a.must(err)
			has(a, "location", got.Location, region)
			if !tagged(got.Tags, "judge") {
				a.Errorf("%s has the tags %v", test.kind, got.Tags)
			}
			a.must(gone(c.BeginDeleteByID(a.Context(), id, test.version, nil)))
			_, err = c.GetByID(a.Context(), id, test.version, nil)
			a.refused(err, http.StatusNotFound, "ResourceNotFound")
		}
	})
}

func TestResourcesOfAGroup(t *testing.T) {
	inBubble(t, core.Options{}, func(a *local) {
		a.group()
		for i := range 7 {
			_, err := publicAddresses().put(a, fmt.Sprint("ip-", i), publicAddress())
			a.must(err)
		}
		_, err := routeTables().put(a, "rt", routeTables().want(""))
		a.must(err)
		c := a.resources.NewClient()
		pager := c.NewListByResourceGroupPager(group, &armresources.ClientListByResourceGroupOptions{Top: new(int32(3))})
		pages, found := 0, 0
		for pager.More() {
			page, err := pager.NextPage(a.Context())
			a.must(err)
			pages, found = pages+1, found+len(page.Value)
		}
		if pages != 3 || found != 8 {
			a.Errorf("%d resources on %d pages, want 8 on 3", found, pages)
		}
		all, err := every(c.NewListPager(&armresources.ClientListOptions{Filter: new("resourceType eq 'Microsoft.Network/routeTables'")}),
			func(p armresources.ClientListResponse) []*armresources.GenericResourceExpanded { return p.Value })
		a.must(err)
		if len(all) != 1 || *all[0].Name != "rt" {
			a.Errorf("%d resources of one type, want the route table", len(all))
		}
	})
}

// Lists have pages, and every one of them is reached.
func TestPages(t *testing.T) {
	const tables = 2500
	inBubble(t, core.Options{}, func(a *local) {
		a.group()
		for i := range tables {
			_, err := a.network.NewRouteTablesClient().BeginCreateOrUpdate(a.Context(), group, fmt.Sprintf("rt-%04d", i),
				armnetwork.RouteTable{Location: new(region)}, nil)
			a.must(err)
		}
		seen := map[string]bool{}
		pages := 0
		pager := a.network.NewRouteTablesClient().NewListAllPager(nil)
		for pager.More() {
			page, err := pager.NextPage(a.Context())
			a.must(err)
			pages++
			for _, table := range page.Value {
				seen[*table.ID] = true
			}
		}
		if pages < 2 || len(seen) != tables {
			a.Errorf("%d of %d route tables on %d pages", len(seen), tables, pages)
		}
	})
}

func TestProviders(t *testing.T) {
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		c := a.resources.NewProvidersClient()
		got, err := c.Get(a.Context(), "Microsoft.Compute", nil)
		a.must(err)
		has(a, "registration", got.RegistrationState, "Registered")
		zones := 0
		for _, kind := range got.ResourceTypes {
			if *kind.ResourceType == "virtualMachines" {
				for _, m := range kind.ZoneMappings {
					if *m.Location == "East US" {
						zones = len(m.Zones)
					}
				}
			}
		}
		if zones != 3 {
			a.Errorf("virtual machines have %d zones in East US, want 3", zones)
		}
		_, err = c.Register(a.Context(), "Microsoft.Network", nil)
		a.must(err)
		all, err := every(c.NewListPager(nil), func(p armresources.ProvidersClientListResponse) []*armresources.Provider { return p.Value })
		a.must(err)
		names := map[string]bool{}
		for _, p := range all {
			names[*p.Namespace] = true
		}
		if !names["Microsoft.Network"] || !names["Microsoft.Compute"] {
			a.Errorf("providers: %v", names)
		}
	})
}
