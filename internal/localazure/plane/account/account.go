// Package account has what the data planes of a storage account share: which account has a host, what a key, a signature or a token allows,
// stored access policies, keys of users, lists, and answers in XML. Layer L2.
package account

import (
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/cloud"
)

// Azure is the local Azure with the documents.
type Azure interface {
	Look(f func(w behaviour.World))
	Do(f func(w behaviour.World) error) error
}

// Of returns the account in a host of a service, such as "acc" in acc.queue.core.windows.net. It is "" for another host.
func Of(host, service string) string {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	for _, c := range cloud.Clouds() {
		if name, ok := strings.CutSuffix(host, "."+service+"."+c.Storage); ok {
			return name
		}
	}
	return ""
}

// Find returns the account with a name, "" and nil without one.
func Find(w behaviour.World, name string) (azure.ID, behaviour.Object) {
	for id, doc := range behaviour.Everywhere(w, storage.AccountType) {
		if strings.EqualFold(id.Name(), name) {
			return id, doc
		}
	}
	return "", nil
}

// Endpoint is an endpoint of a service.
type Endpoint struct {
	// ID is the id of the account, "" if no account has the endpoint.
	ID  azure.ID
	Doc behaviour.Object
	// Name is the name of the account. Secondary says that the endpoint is in its other region.
	Name      string
	Secondary bool
}

// secondarySuffix ends the names of accounts in the hosts of their other regions.
const secondarySuffix = "-secondary"

// FindEndpoint returns the endpoint of a service, such as "queue", in the host of which is a name.
func FindEndpoint(w behaviour.World, name, service string) Endpoint {
	e := Endpoint{Name: name}
	field := "properties.primaryEndpoints."
	if e.Name, e.Secondary = strings.CutSuffix(name, secondarySuffix); e.Secondary {
		field = "properties.secondaryEndpoints."
	}
	if id, doc := Find(w, e.Name); behaviour.Text(doc, field+service) != "" {
		e.ID, e.Doc = id, doc
	}
	return e
}

// Check returns why the endpoint does not serve a request: it has no account, or can be read only.
func (e Endpoint) Check(method string) error {
	if e.ID == "" {
		return refuse(http.StatusNotFound, "ResourceNotFound", "The specified account does not exist.")
	}
	if e.Secondary && method != http.MethodGet && method != http.MethodHead {
		return refuse(http.StatusForbidden, "InsufficientAccountPermissions",
			"The account being accessed does not have sufficient permissions to execute this operation.")
	}
	return nil
}

// CheckKeysAllowed returns why an account does not allow keys and signatures by them.
func CheckKeysAllowed(account behaviour.Object) error {
	if behaviour.At(account, "properties.allowSharedKeyAccess") == false {
		return refuse(http.StatusForbidden, "KeyBasedAuthenticationNotPermitted",
			"Key based authentication is not permitted on this storage account.")
	}
	return nil
}
