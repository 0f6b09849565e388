// Package identity has the behaviour of Microsoft.ManagedIdentity: user-assigned identities and their federated
// credentials. Layer L2.
package identity

import (
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Provider is Microsoft.ManagedIdentity.
func Provider() behaviour.Provider {
	return behaviour.Provider{Types: []behaviour.Type{userAssigned(), federatedCredentials()}}
}

const typeName = "Microsoft.ManagedIdentity/userAssignedIdentities"

// lastSecret is the last API version that shows the URL of an identity's credentials.
const lastSecret = "2018-11-30"

func userAssigned() behaviour.Type {
	style := behaviour.Plain("Microsoft.ManagedIdentity")
	style.EmptyTags = true
	return behaviour.Type{
		Name:    typeName,
		Style:   style,
		Where:   behaviour.Located,
		NoState: true,
		Own:     []string{"properties.tenantId", "properties.principalId", "properties.clientId"},
		Fill: func(c *behaviour.Call) error {
			behaviour.Default(c.Doc, "properties.tenantId", c.TenantOf(c.ID.Subscription()))
			behaviour.Default(c.Doc, "properties.principalId", c.GUID())
			behaviour.Default(c.Doc, "properties.clientId", c.GUID())
			behaviour.Default(c.Doc, "properties.isolationScope", "None")
			return nil
		},
		Show: func(c *behaviour.Call, view behaviour.Object) {
			id := shown(azure.ID(behaviour.Text(view, "id")))
			view["id"] = id
			if version := c.Query.Get("api-version"); version != "" && version <= lastSecret {
				behaviour.Set(view, "properties.clientSecretUrl", "https://control-"+behaviour.Text(view, "location")+
					".identity.azure.net"+id+"/credentials?tid="+behaviour.Text(view, "properties.tenantId")+"&oid="+
					behaviour.Text(view, "properties.principalId")+"&aid="+behaviour.Text(view, "properties.clientId"))
			}
		},
		Actions: map[string]behaviour.Action{"listAssociatedResources": {Do: listAssociated}},
		Header:  placed,
	}
}

// placed says where a new resource is.
func placed(c *behaviour.Call, status int) map[string]string {
	if status != http.StatusCreated {
		return nil
	}
	return map[string]string{"Location": shown(c.ID)}
}

// shown returns an id in this provider's spelling, with "resourcegroups" in lower case.
func shown(id azure.ID) string {
	return strings.Replace(string(id), "/resourceGroups/", "/resourcegroups/", 1)
}

// Identity is a user-assigned identity with the fields that the token service needs.
type Identity struct {
	ID          azure.ID
	PrincipalID string
	ClientID    string
}

// Find returns the identity with a client id, an object id or a resource id.
func Find(w behaviour.World, key string) (Identity, bool) {
	for id, doc := range behaviour.Everywhere(w, typeName) {
		found := Identity{ID: id, PrincipalID: behaviour.Text(doc, "properties.principalId"),
			ClientID: behaviour.Text(doc, "properties.clientId")}
		if strings.EqualFold(found.ClientID, key) || strings.EqualFold(found.PrincipalID, key) || id.Equal(azure.ID(key)) {
			return found, true
		}
	}
	return Identity{}, false
}
