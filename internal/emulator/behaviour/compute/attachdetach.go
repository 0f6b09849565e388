package compute

import (
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/catalog"
)

// attachDetach is the action that names only the disks that come and go. disks
// finds how the machine knows its disks.
func attachDetach(disks func(w behaviour.World, id azure.ID, doc behaviour.Object) dataDisks, sizePath string) behaviour.Action {
	return behaviour.Action{
		Long: true,
		Do: func(c *behaviour.Call) (any, error) {
			if err := wellFormed(c); err != nil {
				return nil, err
			}
			if err := (transition{}).refusal(c.Old); err != nil {
				return nil, err
			}
			d := disks(c.World, c.ID, c.Doc)
			d.old = c.Old
			d.size, _ = catalog.FindSize(behaviour.Text(c.Doc, sizePath))
			if err := markLeaving(c, d); err != nil {
				return nil, err
			}
			if err := addComing(c, d); err != nil {
				return nil, err
			}
			return nil, d.attach()
		},
		Settle: func(c *behaviour.Call) (any, error) {
			disks(c.World, c.ID, c.Doc).detach()
			return behaviour.Clone(behaviour.Sub(c.Doc, "properties.storageProfile")), nil
		},
	}
}

func markLeaving(c *behaviour.Call, d dataDisks) error {
	for _, leaving := range behaviour.Objects(c.Body, "dataDisksToDetach") {
		id := azure.ID(behaviour.Text(leaving, "diskId"))
		at := slices.IndexFunc(behaviour.Objects(d.doc, dataDisksPath), func(o behaviour.Object) bool {
			return behaviour.RefID(o, "managedDisk").Equal(id)
		})
		if at < 0 {
			return behaviour.Invalid("InvalidParameter", "Disk '%s' cannot be detached: it is not attached to VM '%s'.", id, d.machine).At("dataDisksToDetach")
		}
		behaviour.Objects(d.doc, dataDisksPath)[at]["toBeDetached"] = true
	}
	return nil
}

func addComing(c *behaviour.Call, d dataDisks) error {
	for _, coming := range behaviour.Objects(c.Body, "dataDisksToAttach") {
		id := behaviour.Text(coming, "diskId")
		if id == "" {
			return behaviour.Invalid("InvalidParameter", "Required parameter 'dataDisksToAttach.diskId' is missing (null).").At("dataDisksToAttach.diskId")
		}
		entry := behaviour.Object{"createOption": "Attach", "managedDisk": behaviour.Object{"id": id}}
		for _, field := range []string{"lun", "caching", "writeAcceleratorEnabled", "deleteOption"} {
			if v := coming[field]; v != nil {
				entry[field] = v
			}
		}
		if entry["lun"] == nil {
			entry["lun"] = freeLUN(d.doc)
		}
		attached := slices.ContainsFunc(behaviour.Objects(d.doc, dataDisksPath), func(o behaviour.Object) bool {
			return strings.EqualFold(behaviour.Text(o, "managedDisk.id"), id) && !behaviour.Bool(o, "toBeDetached")
		})
		if !attached {
			behaviour.Set(d.doc, dataDisksPath, append(behaviour.Array(d.doc, dataDisksPath), entry))
		}
	}
	return nil
}

// freeLUN is the lowest number that no disk of the machine has.
func freeLUN(doc behaviour.Object) int {
	for lun := 0; ; lun++ {
		if !slices.ContainsFunc(behaviour.Objects(doc, dataDisksPath), func(o behaviour.Object) bool { return number(o, "lun") == lun }) {
			return lun
		}
	}
}
