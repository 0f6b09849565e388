package manageddisk

import (
	"net/http"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/core/catalog"
)

// AttachDetach returns the action that attaches and detaches the data disks of its request. The function disks returns the
// data disks of a machine, and sizePath is the path of the size in its document. The action calls refuse before it changes
// anything.
//
// The reply has the storage profile with the new disks, and marks the leaving disks. Only the machine shows the result of
// the operation.
func AttachDetach(disks func(w behaviour.World, id azure.ID, doc behaviour.Object) DataDisks, sizePath string,
	refuse func(machine behaviour.Object) error,
) behaviour.Action {
	return behaviour.Action{
		Long: true, Status: http.StatusOK, Headers: behaviour.AsyncOperation | behaviour.Notification,
		Do: func(c *behaviour.Call) (any, error) {
			if err := schema.CheckShape(c); err != nil {
				return nil, err
			}
			if err := refuse(c.Old); err != nil {
				return nil, err
			}
			d := disks(c.World, c.ID, c.Doc)
			d.Old = c.Old
			d.Size, _ = catalog.FindSize(behaviour.Text(c.Doc, sizePath))
			if err := markLeaving(c, d); err != nil {
				return nil, err
			}
			if err := addComing(c, d); err != nil {
				return nil, err
			}
			if err := d.Attach(); err != nil {
				return nil, err
			}
			return behaviour.Clone(behaviour.Sub(c.Doc, "properties.storageProfile")), nil
		},
		Settle: func(c *behaviour.Call) (any, error) {
			disks(c.World, c.ID, c.Doc).Detach()
			return behaviour.Clone(behaviour.Sub(c.Doc, "properties.storageProfile")), nil
		},
	}
}

func markLeaving(c *behaviour.Call, d DataDisks) error {
	for _, leaving := range behaviour.Objects(c.Body, "dataDisksToDetach") {
		id := azure.ID(behaviour.Text(leaving, "diskId"))
		at := slices.IndexFunc(behaviour.Objects(d.Doc, DataDisksPath), func(o behaviour.Object) bool {
			return behaviour.RefID(o, "managedDisk").Equal(id)
		})
		if at < 0 {
			return behaviour.Invalid("InvalidParameter", "Disk '%s' cannot be detached: it is not attached to VM '%s'.", id,
				d.Machine).At("dataDisksToDetach")
		}
		behaviour.Objects(d.Doc, DataDisksPath)[at]["toBeDetached"] = true
	}
	return nil
}

func addComing(c *behaviour.Call, d DataDisks) error {
	for _, coming := range behaviour.Objects(c.Body, "dataDisksToAttach") {
		id := behaviour.Text(coming, "diskId")
		if id == "" {
			return behaviour.Invalid("InvalidParameter",
				"Required parameter 'dataDisksToAttach.diskId' is missing (null).").At("dataDisksToAttach.diskId")
		}
		entry := behaviour.Object{"createOption": "Attach", "managedDisk": behaviour.Object{"id": id}}
		for _, field := range []string{"lun", "caching", "writeAcceleratorEnabled", "deleteOption"} {
			if v := coming[field]; v != nil {
				entry[field] = v
			}
		}
		if set := behaviour.RefID(coming, "diskEncryptionSet"); set != "" {
			behaviour.Set(entry, "managedDisk.diskEncryptionSet", behaviour.Ref(set))
		}
		if entry["lun"] == nil {
			entry["lun"] = freeLUN(d.Doc)
		}
		attached := slices.ContainsFunc(behaviour.Objects(d.Doc, DataDisksPath), func(o behaviour.Object) bool {
			return strings.EqualFold(behaviour.Text(o, "managedDisk.id"), id) && !behaviour.Bool(o, "toBeDetached")
		})
		if !attached {
			behaviour.Set(d.Doc, DataDisksPath, append(behaviour.Array(d.Doc, DataDisksPath), entry))
		}
	}
	return nil
}

// freeLUN returns the lowest LUN that no disk of the machine has.
func freeLUN(doc behaviour.Object) int {
	for lun := 0; ; lun++ {
		if !slices.ContainsFunc(behaviour.Objects(doc, DataDisksPath),
			func(o behaviour.Object) bool { return schema.Number(o, "lun") == lun }) {
			return lun
		}
	}
}
