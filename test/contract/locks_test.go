package contract

import (
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armlocks"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"

	"kaz/internal/localazure/core"
)

// TestLocksHaveNoTags writes and reads a lock of a resource group. Tags are refused: the official model of locks has none.
func TestLocksHaveNoTags(t *testing.T) {
	inBubble(t, core.Options{}, func(a *local) {
		a.group()
		c := clients(a, armlocks.NewClientFactory).NewManagementLocksClient()
		level := armlocks.LockLevelCanNotDelete
		_, err := c.CreateOrUpdateAtResourceGroupLevel(a.Context(), group, "keep", armlocks.ManagementLockObject{
			Properties: &armlocks.ManagementLockProperties{Level: &level}}, nil)
		a.must(err)
		got, err := c.GetAtResourceGroupLevel(a.Context(), group, "keep", nil)
		a.must(err)
		has(a, "level", got.Properties.Level, level)

		id := "/subscriptions/" + subscription + "/resourceGroups/" + group + "/providers/Microsoft.Authorization/locks/tagged"
		_, err = ended(a.resources.NewClient().BeginCreateOrUpdateByID(a.Context(), id, "2020-05-01", armresources.GenericResource{
			Properties: map[string]any{"level": "CanNotDelete"}, Tags: tags("judge")}, nil))
		a.refused(err, http.StatusBadRequest, "InvalidRequestContent")
	})
}
