package compute

import (
	"cmp"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/core/catalog"
)

// nameRegions writes the names of regions as people read them, "East US" for eastus.
func nameRegions(c *behaviour.Call) error {
	for _, target := range behaviour.Objects(c.Doc, "properties.publishingProfile.targetRegions") {
		if region, known := catalog.FindRegion(behaviour.Text(target, "name")); known {
			target["name"] = region.Display
		}
	}
	return nil
}

// copyImage writes the disks of its source into a version of a gallery's image. The source is a machine, a managed image, another version,
// or for each disk a disk or a snapshot.
func copyImage(c *behaviour.Call) error {
	const profile, osImage, dataImages = "properties.storageProfile", "properties.storageProfile.osDiskImage",
		"properties.storageProfile.dataDiskImages"
	var source behaviour.Object
	for _, path := range []string{".source.id", ".source.virtualMachineId"} {
		if doc, there := c.Get(azure.ID(behaviour.Text(c.Doc, profile+path))); there {
			source = doc
		}
	}
	osDisk, dataDisks := behaviour.Sub(source, profile+".osDisk"), behaviour.Objects(source, profile+".dataDisks")
	if osDisk == nil {
		osDisk, dataDisks = behaviour.Sub(source, osImage), behaviour.Objects(source, dataImages)
	}
	behaviour.Default(c.Doc, osImage, behaviour.Object{})
	fillDiskImage(c, behaviour.Sub(c.Doc, osImage), osDisk)
	if len(dataDisks) > 0 && behaviour.At(c.Doc, dataImages) == nil {
		images := []any{}
		for _, disk := range dataDisks {
			image := behaviour.Object{"lun": disk["lun"]}
			fillDiskImage(c, image, disk)
			images = append(images, image)
		}
		behaviour.Set(c.Doc, dataImages, images)
	}
	for _, image := range behaviour.Objects(c.Doc, dataImages) {
		var own behaviour.Object
		for _, disk := range dataDisks {
			if behaviour.Equal(disk["lun"], image["lun"]) {
				own = disk
			}
		}
		fillDiskImage(c, image, own)
	}
	return nil
}

// fillDiskImage writes into the image of a disk what the disk has: one of a machine, of an image or of another version, or the one that
// the image names itself.
func fillDiskImage(c *behaviour.Call, image, disk behaviour.Object) {
	if disk == nil {
		doc, _ := c.Get(behaviour.RefID(image, "source"))
		disk = behaviour.Sub(doc, "properties")
	}
	for _, path := range []string{"diskSizeGB", "sizeInGB"} {
		if size, ok := behaviour.Int(disk, path); ok {
			behaviour.Default(image, "sizeInGB", size)
		}
	}
	caching := cmp.Or(behaviour.Text(disk, "caching"), behaviour.Text(disk, "hostCaching"), "ReadWrite")
	behaviour.Default(image, "hostCaching", caching)
	behaviour.Default(image, "source", behaviour.Object{})
}

// showReplication shows the state of the copies of an image in its regions, if a request asks for it.
func showReplication(c *behaviour.Call, view behaviour.Object) {
	if !c.Expands("ReplicationStatus") {
		return
	}
	summary := []any{}
	for _, target := range behaviour.Objects(view, "properties.publishingProfile.targetRegions") {
		summary = append(summary, behaviour.Object{"region": behaviour.Text(target, "name"), "state": "Completed", "details": "",
			"progress": 100})
	}
	behaviour.Set(view, "properties.replicationStatus", behaviour.Object{"aggregatedState": "Completed", "summary": summary})
}

// locateSource shows where the machine or the collection is from which restore points are made.
func locateSource(c *behaviour.Call) error {
	if source, there := c.Get(behaviour.RefID(c.Doc, "properties.source")); there {
		behaviour.Default(c.Doc, "properties.source.location", behaviour.Text(source, "location"))
	}
	return nil
}

// showChildren returns a function that shows the resources of a kind in their group: references, or whole resources if the request
// expands what.
func showChildren(kind, what string) func(c *behaviour.Call, view behaviour.Object) {
	return func(c *behaviour.Call, view behaviour.Object) {
		id := azure.ID(behaviour.Text(view, "id"))
		items := []any{}
		for child := range c.List(id, c.Type.Name+"/"+kind) {
			if what == "" {
				items = append(items, behaviour.Ref(child))
			} else if shown, there := c.View(child); there {
				items = append(items, shown)
			}
		}
		if len(items) > 0 && (what == "" || c.Expands(what)) {
			behaviour.Set(view, "properties."+kind, items)
		}
	}
}

// locationRoutes list the machines and the scale sets of a location.
func locationRoutes() []behaviour.Route {
	var routes []behaviour.Route
	for _, kind := range []string{"virtualMachines", "virtualMachineScaleSets"} {
		routes = append(routes, behaviour.Route{
			Method: "GET", Pattern: "/subscriptions/{subscription}/providers/Microsoft.Compute/locations/{location}/" + kind,
			Permission: schema.Namespace + "locations/" + kind + "/read",
			Do: func(c *behaviour.Call) (behaviour.Reply, error) {
				region, ok := catalog.FindRegion(c.Param["location"])
				if !ok {
					return behaviour.Reply{}, noLocation(c.Param["location"])
				}
				items := []any{}
				for id, doc := range c.List(azure.SubscriptionID(c.Param["subscription"]), schema.Namespace+kind) {
					if view, there := c.View(id); there && behaviour.Text(doc, "location") == region.Name {
						items = append(items, view)
					}
				}
				return behaviour.Reply{Status: 200, Body: behaviour.Object{"value": items}}, nil
			},
		})
	}
	return routes
}
