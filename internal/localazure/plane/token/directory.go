package token

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

const (
	identityType   = "Microsoft.ManagedIdentity/userAssignedIdentities"
	federationType = identityType + "/federatedIdentityCredentials"
)

// ByClientID returns the application with a client id: one of the service's own, or a user-assigned identity among the
// resources.
func (s *Service) ByClientID(id string) (Application, bool) {
	return s.find(func(a Application) bool { return strings.EqualFold(a.ClientID, id) })
}

// ByObjectID returns the application with an object id, to which roles are assigned.
func (s *Service) ByObjectID(id string) (Application, bool) {
	return s.find(func(a Application) bool { return strings.EqualFold(a.ObjectID, id) })
}

// ByResourceID returns the managed identity with a resource id.
func (s *Service) ByResourceID(id azure.ID) (Application, bool) {
	return s.find(func(a Application) bool { return a.ResourceID != "" && a.ResourceID.Equal(id) })
}

func (s *Service) find(match func(Application) bool) (Application, bool) {
	for _, a := range s.Applications {
		if match(a) {
			return a, true
		}
	}
	if s.World == nil {
		return Application{}, false
	}
	var found Application
	ok := false
	s.World(func(w behaviour.World) {
		for id, doc := range behaviour.Everywhere(w, identityType) {
			a := userAssigned(id, doc)
			if !match(a) {
				continue
			}
			for _, f := range w.List(id, federationType) {
				a.Federated = append(a.Federated, Federated{
					Issuer:    behaviour.Text(f, "properties.issuer"),
					Subject:   behaviour.Text(f, "properties.subject"),
					Audiences: behaviour.Texts(f, "properties.audiences"),
				})
			}
			found, ok = a, true
			return
		}
	})
	return found, ok
}

func userAssigned(id azure.ID, doc behaviour.Object) Application {
	return Application{
		Name: id.Name(), Managed: true, ResourceID: id,
		ClientID: behaviour.Text(doc, "properties.clientId"), ObjectID: behaviour.Text(doc, "properties.principalId"),
	}
}

// GUIDFor derives the client id of an object id without an application. It is the same after a restart.
func GUIDFor(objectID string) string {
	b := sha256.Sum256([]byte("client id of " + strings.ToLower(objectID)))
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
