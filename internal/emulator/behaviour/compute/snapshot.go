package compute

import (
	"strings"

	"kaz/internal/emulator/behaviour"
)

func snapshots() behaviour.Type {
	return behaviour.Type{
		Name:    provider + "snapshots",
		Style:   behaviour.Disk(),
		Where:   behaviour.Located,
		Own:     append(ownDiskFields(), "properties.snapshotAccessState", "properties.completionPercent"),
		Fill:    fillSnapshot,
		Settle:  settleSnapshot,
		Actions: accessActions(),
	}
}

func fillSnapshot(c *behaviour.Call) error {
	if err := wellFormed(c); err != nil {
		return err
	}
	if c.Old != nil {
		keepRest(c)
		if c.Changed("properties.incremental") {
			return behaviour.Conflict("PropertyChangeNotAllowed", "Changing property 'incremental' of existing disk %s is not allowed.", c.ID.Name()).At("incremental")
		}
	}
	if err := checkPlace(c); err != nil {
		return err
	}
	if err := fillCreation(c, "snapshot"); err != nil {
		return err
	}
	return checkSize(c)
}

func settleSnapshot(c *behaviour.Call) error {
	behaviour.Default(c.Doc, "sku.name", "Standard_LRS")
	behaviour.Set(c.Doc, "sku.tier", skuTier(behaviour.Text(c.Doc, "sku.name")))
	noteSource(c)
	behaviour.Default(c.Doc, "properties.incremental", false)
	if strings.EqualFold(behaviour.Text(c.Doc, "properties.creationData.createOption"), "CopyStart") {
		behaviour.Set(c.Doc, "properties.completionPercent", 100)
	}
	commonDiskFacts(c.World, c.Doc)
	behaviour.Default(c.Doc, "properties.diskState", "Unattached")
	behaviour.Default(c.Doc, "properties.snapshotAccessState", "Available")
	return nil
}
