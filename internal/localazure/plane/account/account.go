// Package account has what the data planes of a storage account share: which account has a host, what a key, a signature or a token allows,
// stored access policies, keys of users, lists, and answers in XML. Layer L2.
package account

import (
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

// CheckKeysAllowed returns why an account does not allow keys and signatures by them.
func CheckKeysAllowed(account behaviour.Object) error {
	if behaviour.At(account, "properties.allowSharedKeyAccess") == false {
		return refuse(403, "KeyBasedAuthenticationNotPermitted", "Key based authentication is not permitted on this storage account.")
	}
	return nil
}
