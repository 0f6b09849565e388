package compute

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/core/catalog"
)

// copyImage writes the disks of its source into a version of a gallery's image.
func copyImage(c *behaviour.Call) error {
	const profile = "properties.storageProfile"
	var source behaviour.Object
	for _, path := range []string{".source", ".osDiskImage.source"} {
		if doc, there := c.Get(behaviour.RefID(c.Doc, profile+path)); there {
			source = doc
		}
	}
	disk := behaviour.Sub(source, profile+".osDisk")
	if disk == nil {
		disk = behaviour.Sub(source, "properties") // of a disk or snapshot
	}
	fill := func(image, disk behaviour.Object) {
		if size, ok := behaviour.Int(disk, "diskSizeGB"); ok {
			behaviour.Default(image, "sizeInGB", size)
		}
		behaviour.Default(image, "hostCaching", "ReadWrite")
		behaviour.Default(image, "source", behaviour.Object{})
	}
	behaviour.Default(c.Doc, profile+".osDiskImage", behaviour.Object{})
	fill(behaviour.Sub(c.Doc, profile+".osDiskImage"), disk)
	if disks := behaviour.Objects(source, profile+".dataDisks"); len(disks) > 0 && behaviour.At(c.Doc, profile+".dataDiskImages") == nil {
		images := []any{}
		for _, disk := range disks {
			image := behaviour.Object{"lun": disk["lun"]}
			fill(image, disk)
			images = append(images, image)
		}
		behaviour.Set(c.Doc, profile+".dataDiskImages", images)
	}
	return nil
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

// showHost shows the state of a dedicated host or a capacity reservation, if a request asks for it.
func showHost(c *behaviour.Call, view behaviour.Object) {
	if c.Expands("instanceView") {
		behaviour.Set(view, "properties.instanceView", behaviour.Object{
			"statuses": vm.Statuses(schema.State(view), vm.Running, behaviour.Text(view, "properties.timeCreated"))})
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
