package compute

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

// sharedField is the field of a gallery with those that it is shared with.
const sharedField = behaviour.Private + "sharedWith"

// shareGallery gives galleries the action that shares them with subscriptions and tenants, or with everyone.
func shareGallery(t *behaviour.Type) {
	t.Own = append(slices.Clip(t.Own), sharedField, "properties.sharingStatus", "properties.sharingProfile.groups",
		"properties.sharingProfile.communityGalleryInfo.publicNames",
		"properties.sharingProfile.communityGalleryInfo.communityGalleryEnabled")
	t.Actions = map[string]behaviour.Action{"share": {
		Status: 202, Long: true, Busy: "-", Headers: behaviour.AsyncOperation | behaviour.Location,
		Do: func(c *behaviour.Call) (any, error) {
			operation := behaviour.Text(c.Body, "operationType")
			if !schema.ContainsFold([]string{"Add", "Remove", "Reset", "EnableCommunity"}, operation) {
				return nil, behaviour.Invalid("InvalidParameter", "The value '%s' of parameter 'operationType' is invalid. The allowed "+
					"values are: Add, Remove, Reset, EnableCommunity.", operation).At("operationType")
			}
			return nil, nil
		},
		Settle: func(c *behaviour.Call) (any, error) {
			share(c)
			return behaviour.Object{"operationType": c.Body["operationType"], "groups": c.Body["groups"]}, nil
		},
	}}
	t.Show = showSharing
}

// share changes with which subscriptions, tenants or communities a gallery is shared.
func share(c *behaviour.Call) {
	groups := behaviour.Sub(c.Doc, sharedField+".groups")
	if groups == nil {
		groups = behaviour.Object{}
	}
	switch strings.ToLower(behaviour.Text(c.Body, "operationType")) {
	case "reset":
		delete(c.Doc, sharedField)
		return
	case "enablecommunity":
		name := behaviour.Text(c.Doc, "properties.sharingProfile.communityGalleryInfo.publicNamePrefix") + "-" + c.GUID()
		behaviour.Set(c.Doc, sharedField+".publicNames", []any{name})
		return
	}
	for _, group := range behaviour.Objects(c.Body, "groups") {
		kind := behaviour.Text(group, "type")
		ids := slices.DeleteFunc(behaviour.Texts(groups, kind), func(id string) bool {
			return schema.ContainsFold(behaviour.Texts(group, "ids"), id)
		})
		if strings.EqualFold(behaviour.Text(c.Body, "operationType"), "Add") {
			ids = append(ids, behaviour.Texts(group, "ids")...)
		}
		all := make([]any, len(ids))
		for i, id := range ids {
			all[i] = id
		}
		groups[kind] = all
	}
	behaviour.Set(c.Doc, sharedField+".groups", groups)
}

// showSharing shows with what a gallery is shared, and hides the field that holds it.
func showSharing(c *behaviour.Call, view behaviour.Object) {
	stored, _ := c.Get(azure.ID(behaviour.Text(view, "id")))
	behaviour.Hide(view)
	if names := behaviour.Array(stored, sharedField+".publicNames"); names != nil {
		behaviour.Set(view, "properties.sharingProfile.communityGalleryInfo.communityGalleryEnabled", true)
		behaviour.Set(view, "properties.sharingProfile.communityGalleryInfo.publicNames", behaviour.Clone(names))
	}
	if c.Expands("SharingProfile/Groups") || strings.EqualFold(c.Query.Get("$select"), "Permissions") {
		groups := []any{}
		for _, kind := range []string{"Subscriptions", "AADTenants"} {
			if ids := behaviour.Array(stored, sharedField+".groups."+kind); len(ids) > 0 {
				groups = append(groups, behaviour.Object{"type": kind, "ids": behaviour.Clone(ids)})
			}
		}
		if len(groups) > 0 {
			behaviour.Set(view, "properties.sharingProfile.groups", groups)
		}
	}
}
