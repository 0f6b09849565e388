package behaviour

import "strings"

// Caller is the principal that makes a request. The zero value has no rights.
type Caller struct {
	Principal *Principal `json:"principal,omitempty"`
	// Auxiliary are the principals of the same caller in other tenants.
	Auxiliary []*Principal `json:"auxiliary,omitempty"`
}

// Itself is the local Azure as a caller. It may do everything, and management locks do not hold for it. A provider is the caller of
// requests that belong to the inside of a resource, such as the network interface of a private endpoint.
func Itself() Caller { return Caller{Principal: &Principal{Owner: true, Azure: true}} }

// Principal is an identity that has a token.
type Principal struct {
	ObjectID      string   `json:"objectId"`
	ApplicationID string   `json:"applicationId"`
	Tenant        string   `json:"tenant,omitempty"`
	Groups        []string `json:"groups,omitempty"`
	// Owner principals may do everything.
	Owner bool `json:"owner,omitempty"`
	// Azure is the local Azure itself.
	Azure bool `json:"azure,omitempty"`
}

// User is a user of the directory. It has no credentials here: it is a principal that role assignments may name.
type User struct {
	ObjectID string `json:"objectId"`
	Name     string `json:"name"` // the name that is shown
	Email    string `json:"email"`
}

// IDs are the ids of the application and the object of a principal, both empty for none.
func (p *Principal) IDs() (application, object string) {
	if p == nil {
		return "", ""
	}
	return p.ApplicationID, p.ObjectID
}

// TypeInActions is a type as the actions of role definitions name it. The type of resource groups has another name there.
func TypeInActions(fullType string) string {
	if strings.EqualFold(fullType, "Microsoft.Resources/resourceGroups") {
		return "Microsoft.Resources/subscriptions/resourceGroups"
	}
	return fullType
}
