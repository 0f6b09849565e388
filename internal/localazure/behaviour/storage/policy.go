package storage

import "kaz/internal/localazure/behaviour"

// policiesField is the field of a container with its stored access policies.
const policiesField = behaviour.Private + "policies"

// Policy is a stored access policy of a container. Its times are as the client has spelled them, and "" if signatures have them.
type Policy struct {
	ID         string `xml:"Id"`
	Start      string `xml:"AccessPolicy>Start,omitempty"`
	Expiry     string `xml:"AccessPolicy>Expiry,omitempty"`
	Permission string `xml:"AccessPolicy>Permission,omitempty"`
}

// Policies returns the stored access policies of a container.
func Policies(container behaviour.Object) (all []Policy) {
	for _, kept := range behaviour.Objects(container, policiesField) {
		all = append(all, Policy{ID: behaviour.Text(kept, "id"), Start: behaviour.Text(kept, "start"),
			Expiry: behaviour.Text(kept, "expiry"), Permission: behaviour.Text(kept, "permission")})
	}
	return all
}

// SetPolicies replaces the stored access policies of a container.
func SetPolicies(container behaviour.Object, policies []Policy) {
	kept := []any{}
	for _, p := range policies {
		kept = append(kept, behaviour.Object{"id": p.ID, "start": p.Start, "expiry": p.Expiry, "permission": p.Permission})
	}
	container[policiesField] = kept
}
