package share

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/plan/parameter"
)

// Claimed is a persistent volume of the driver.
type Claimed struct {
	Name, Handle string
	// Attributes are the volume attributes. What they name comes before the parts of the handle.
	Attributes map[string]string
	// ClaimNamespace and ClaimName name the claim that the volume is bound to, "" for none.
	ClaimNamespace, ClaimName string
	// Released says that the volume is to be deleted and that no claim has it.
	Released bool
}

// attribute returns an attribute. References to the claim and the volume are replaced as nodes replace them.
func (c Claimed) attribute(key string) string {
	p := Parameters{
		PVCName:      cmp.Or(parameter.Lookup(c.Attributes, "csi.storage.k8s.io/pvc/name"), c.ClaimName),
		PVCNamespace: cmp.Or(parameter.Lookup(c.Attributes, "csi.storage.k8s.io/pvc/namespace"), c.ClaimNamespace),
		PVName:       cmp.Or(parameter.Lookup(c.Attributes, "csi.storage.k8s.io/pv/name"), c.Name),
	}
	return p.Expand(parameter.Lookup(c.Attributes, key))
}

// Suffix is the end of the name of the volume's file server, "" for that of the cloud configuration.
func (c Claimed) Suffix() string { return c.attribute("storageEndpointSuffix") }

// Volume returns the share of a persistent volume as nodes find it. The error says that neither the attributes nor the handle name
// a share.
func (c Claimed) Volume() (Volume, error) {
	v, err := ParseVolume(c.Handle)
	if err != nil {
		v = Volume{} // the handle of a volume that a user made can be any text
	}
	v.Group, v.Subscription = cmp.Or(c.attribute("resourceGroup"), v.Group), cmp.Or(c.attribute("subscriptionID"), v.Subscription)
	v.Account = cmp.Or(c.attribute("storageAccount"), v.Account, AccountOf(c.attribute("server")))
	v.Share = cmp.Or(c.attribute("shareName"), v.Share)
	if v.Share == "" {
		return v, fmt.Errorf("neither the volume id %q nor the attribute shareName names a share", c.Handle)
	}
	return v, nil
}

// AccountOf returns the account of a file server, "" if its name does not tell.
func AccountOf(server string) string {
	account, rest, _ := strings.Cut(server, ".")
	if strings.HasPrefix(rest, "file.core.") || strings.HasPrefix(rest, "privatelink.file.core.") {
		return account
	}
	return ""
}

// NamesAccount reports whether a text can be the name of a storage account. Volumes of the in-tree driver can have that of a Secret.
func NamesAccount(text string) bool { return accountName.MatchString(text) }

// Use says whether a persistent volume uses a share.
type Use int

// The values of [Use]. MayUse is that of a volume that does not tell enough.
const (
	NotUsed Use = iota
	MayUse
	Used
)

// Uses reports whether a persistent volume uses a share of an account. The handle, the attributes and the server can name
// different shares and accounts: each of them counts.
func (c Claimed) Uses(account, name string) Use {
	v, err := ParseVolume(c.Handle)
	attribute, _, _ := strings.Cut(c.attribute("shareName"), "/")
	open := strings.Contains(attribute, "${") // it depends on a claim that is not known
	sure := strings.EqualFold(v.Share, name) || strings.EqualFold(attribute, name)
	doubt := err != nil && (open || attribute == "" && strings.Contains(strings.ToLower(c.Handle), strings.ToLower(name)))
	if !sure && !doubt {
		return NotUsed
	}
	server := c.attribute("server")
	accounts := []string{v.Account, c.attribute("storageAccount"), AccountOf(server)}
	named := slices.DeleteFunc(accounts, func(a string) bool { return a == "" })
	matches := slices.ContainsFunc(named, func(a string) bool { return strings.EqualFold(a, account) })
	// The account can be in a Secret, and a server can have a name of its own.
	unknown := account == "" || len(named) == 0 || v.Translated || server != "" && AccountOf(server) == ""
	switch {
	case sure && matches:
		return Used
	case matches, unknown:
		return MayUse
	}
	return NotUsed
}

// OtherUser returns a persistent volume besides the deleted one that uses its share, and whether it does. If two volumes are
// deleted at the same time, the volume with the first name deletes the share.
func OtherUser(all []Claimed, handle, account, name string) (Claimed, Use) {
	mine := OwnerOf(all, handle).Name
	other, use := Claimed{}, NotUsed
	for _, c := range all {
		if c.Name == mine || c.Released && c.Name > mine {
			continue
		}
		if now := c.Uses(account, name); now > use {
			other, use = c, now
		}
	}
	return other, use
}

// OwnerOf returns the persistent volume that is deleted with a handle, without a name if there is none. If several volumes have
// the handle, it is the first released volume by name.
func OwnerOf(all []Claimed, handle string) (owner Claimed) {
	for _, c := range all {
		first := owner.Name == "" || c.Released && !owner.Released || c.Released == owner.Released && c.Name < owner.Name
		if c.Handle == handle && first {
			owner = c
		}
	}
	return owner
}

// CheckDelete returns why a volume must not be deleted by its handle: its attributes name another share, which is the one that
// nodes mount.
func (c Claimed) CheckDelete(v Volume) error {
	for _, r := range []struct{ key, handle string }{{"shareName", v.Share}, {"storageAccount", v.Account}} {
		named := c.attribute(r.key)
		if named != "" && r.handle != "" && !strings.EqualFold(named, r.handle) {
			return fmt.Errorf("persistent volume %s: its volume id %q has %q, and its attribute %s is %q: delete the right share by hand, "+
				"and the volume with the reclaim policy Retain", c.Name, c.Handle, r.handle, r.key, named)
		}
	}
	return nil
}
