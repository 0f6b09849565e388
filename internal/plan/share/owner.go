package share

import (
	"fmt"
	"maps"
	"strings"

	"kaz/internal/plan/parameter"
)

// Metadata of a share that say for which volume and claim it was created.
const (
	metadataVolume    = "volumeName"
	metadataNamespace = "claimNamespace"
	metadataClaim     = "claimName"
)

// owned returns the metadata of a new share: the driver, the volume and its claim.
func (p *Parameters) owned(driver, volume string) map[string]string {
	values := map[string]string{
		createdBy: driver, metadataVolume: volume, metadataNamespace: p.PVCNamespace, metadataClaim: p.PVCName,
	}
	maps.DeleteFunc(values, func(_, value string) bool { return value == "" })
	return values
}

// OwnerVolume returns for which persistent volume the driver made a share with metadata, "" if the metadata do not tell.
func OwnerVolume(metadata map[string]string) string {
	if parameter.Lookup(metadata, createdBy) == "" {
		return ""
	}
	return parameter.Lookup(metadata, metadataVolume)
}

// perClaim reports whether a class gives the claims of different namespaces different shares. A class with a fixed name gives all of
// them one share.
func (p *Parameters) perClaim() bool { return strings.Contains(p.ShareName, "${") }

// CheckOwner returns why a share that exists with metadata is not that of a volume, nil if it can be. others are the persistent volumes
// of an account's share. A share that was created before shares had owners in their metadata belongs to the claims of these volumes.
func (p *Parameters) CheckOwner(volume, account, name string, metadata map[string]string, others []Claimed) error {
	owner, namespace := parameter.Lookup(metadata, metadataVolume), parameter.Lookup(metadata, metadataNamespace)
	switch {
	case p.ShareName == "" && owner != "" && owner != volume:
		return fmt.Errorf("it was created for volume %s", owner)
	case !p.perClaim():
		return nil
	case namespace != "" && namespace != p.PVCNamespace:
		return fmt.Errorf("it was created for claim %s/%s: claims of namespace %s need another shareName, such as one with "+
			"${pvc.metadata.namespace}", namespace, parameter.Lookup(metadata, metadataClaim), p.PVCNamespace)
	case namespace != "":
		return nil
	}
	for _, c := range others {
		if c.ClaimNamespace != "" && c.ClaimNamespace != p.PVCNamespace && c.Uses(account, name) != NotUsed {
			return fmt.Errorf("persistent volume %s of claim %s/%s has it: claims of namespace %s need another shareName, such as one "+
				"with ${pvc.metadata.namespace}", c.Name, c.ClaimNamespace, c.ClaimName, p.PVCNamespace)
		}
	}
	return nil
}
