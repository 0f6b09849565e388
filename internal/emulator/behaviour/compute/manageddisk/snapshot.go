package manageddisk

import (
	"strings"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/compute/schema"
)

func snapshots() behaviour.Type {
	return behaviour.Type{
		Name:    schema.Namespace + "snapshots",
		Style:   behaviour.Disk(),
		Where:   behaviour.Located,
		Own:     append(ownDiskFields(), "properties.snapshotAccessState", "properties.completionPercent"),
		Fill:    fillSnapshot,
		Settle:  settleSnapshot,
		Actions: accessActions(),
	}
}

func fillSnapshot(c *behaviour.Call) error {
	if err := schema.CheckShape(c); err != nil {
		return err
	}
	if c.Old != nil {
		schema.KeepRest(c)
		if c.Changed("properties.incremental") {
			return behaviour.Conflict("PropertyChangeNotAllowed", "Changing property 'incremental' of existing disk %s is not allowed.",
				c.ID.Name()).At("incremental")
		}
	}
	if err := schema.CheckZones(c); err != nil {
		return err
	}
	if err := fillCreation(c, "snapshot"); err != nil {
		return err
	}
	return checkSize(c)
}

func settleSnapshot(c *behaviour.Call) error {
	behaviour.Default(c.Doc, "sku.name", "Standard_LRS")
	behaviour.Set(c.Doc, "sku.tier", SKUTier(behaviour.Text(c.Doc, "sku.name")))
	copySourceFields(c)
	behaviour.Default(c.Doc, "properties.incremental", false)
	if strings.EqualFold(behaviour.Text(c.Doc, "properties.creationData.createOption"), "CopyStart") {
		behaviour.Set(c.Doc, "properties.completionPercent", 100)
	}
	commonDiskFacts(c.World, c.Doc)
	behaviour.Default(c.Doc, "properties.diskState", "Unattached")
	behaviour.Default(c.Doc, "properties.snapshotAccessState", "Available")
	return nil
}
