package gateway

import (
	"net/netip"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/gateway/routing"
)

// source is a gateway's document with what it refers to.
type source struct {
	id    azure.ID
	doc   behaviour.Object
	facts routing.Facts
	// vault has the values of secrets in key vaults, by their ids in lower case.
	vault map[string]string
}

// gather reads a gateway's document with what it refers to.
func gather(w behaviour.World, id azure.ID, doc behaviour.Object) *source {
	s := &source{id: id, doc: doc, facts: routing.Facts{Public: map[string]netip.Addr{}, Members: map[string][]string{}},
		vault: map[string]string{}}
	for _, public := range routing.Frontends(doc) {
		address, _ := w.Get(public)
		if a, err := netip.ParseAddr(behaviour.Text(address, "properties.ipAddress")); err == nil {
			s.facts.Public[public.Key()] = a
		}
	}
	for _, pool := range behaviour.Objects(doc, "properties.backendAddressPools") {
		of := id.Child("backendAddressPools", behaviour.Text(pool, "name"))
		for _, r := range w.Referrers(of) {
			if !strings.HasSuffix(r.Path, "applicationGatewayBackendAddressPools") {
				continue
			}
			configuration, _ := w.Get(r.Object)
			if a := behaviour.Text(configuration, "properties.privateIPAddress"); a != "" {
				s.facts.Members[of.Key()] = append(s.facts.Members[of.Key()], a)
			}
		}
	}
	s.readVault(w)
	return s
}

// readVault reads the secrets that the certificates refer to.
func (s *source) readVault(w behaviour.World) {
	wanted := map[string]bool{}
	for _, c := range behaviour.Objects(s.doc, "properties.sslCertificates") {
		if id := behaviour.Text(c, "properties.keyVaultSecretId"); id != "" {
			wanted[vaultKey(id)] = true
		}
	}
	if len(wanted) == 0 {
		return
	}
	for _, secret := range behaviour.Everywhere(w, "Microsoft.KeyVault/vaults/secrets") {
		for _, path := range []string{"properties.secretUri", "properties.secretUriWithVersion"} {
			if key := vaultKey(behaviour.Text(secret, path)); wanted[key] {
				s.vault[key] = behaviour.Text(secret, behaviour.Private+"value")
			}
		}
	}
}

// vaultKey is the id of a secret in a key vault in the form in which ids compare.
func vaultKey(id string) string {
	return strings.TrimSuffix(strings.ToLower(strings.Replace(id, ":443/", "/", 1)), "/")
}
