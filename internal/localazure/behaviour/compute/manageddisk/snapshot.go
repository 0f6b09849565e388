package manageddisk

import (
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

func snapshots() behaviour.Type {
	return behaviour.Type{
		Name:    schema.Namespace + "snapshots",
		Style:   behaviour.Disk(),
		Where:   behaviour.Located,
		Own:     append(ownDiskFields(), "properties.snapshotAccessState", "properties.completionPercent"),
		Fill:    fillSnapshot,
		Settle:  settleSnapshot,
		Show:    showSnapshot,
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
	commonDiskFacts(c.World, c.Doc)
	behaviour.Default(c.Doc, "properties.diskState", "Unattached")
	behaviour.Default(c.Doc, "properties.snapshotAccessState", "Available")
	return nil
}

// copyTime is how long Azure copies a snapshot to another region. On Azure it takes minutes to hours, by the size.
const copyTime = 2 * time.Minute

func showSnapshot(c *behaviour.Call, view behaviour.Object) {
	showAccepted(c, view)
	if copiesRegion(view) {
		behaviour.Set(view, "properties.completionPercent", copied(c.World, view))
	}
}

func copiesRegion(doc behaviour.Object) bool {
	return strings.EqualFold(behaviour.Text(doc, "properties.creationData.createOption"), "CopyStart")
}

// copied returns how many percent of a snapshot from another region are copied. The copy begins when the snapshot is created.
// Other snapshots are complete at once.
func copied(w behaviour.World, doc behaviour.Object) int {
	const all = 100
	if !copiesRegion(doc) {
		return all
	}
	began, err := time.Parse(time.RFC3339Nano, behaviour.Text(doc, "properties.timeCreated"))
	if err != nil {
		return 0
	}
	whole, spent := w.Takes(copyTime), w.Now().Sub(began)
	if spent >= whole {
		return all
	}
	return max(0, int(all*spent/whole))
}
