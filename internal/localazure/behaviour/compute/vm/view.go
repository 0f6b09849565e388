package vm

import (
	"cmp"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/core/catalog"
)

// agentVersion is the version of the guest agent in the recordings.
const agentVersion = "2.7.41491.1149"

// InstanceView returns the status of a machine.
func InstanceView(doc behaviour.Object) behaviour.Object {
	power, created := PowerOf(doc), behaviour.Text(doc, "properties.timeCreated")
	since := cmp.Or(behaviour.Text(doc, schema.Runtime+".since"), created)
	view := behaviour.Object{
		"disks":            diskViews(doc, created),
		"hyperVGeneration": manageddisk.HyperVGeneration(doc),
		"statuses":         append(Statuses(schema.State(doc), power, created), guestStatuses(doc)...),
	}
	if power == Running {
		image := ImageOf(doc)
		view["computerName"] = behaviour.Text(doc, "properties.osProfile.computerName")
		view["osName"], view["osVersion"] = image.OSName, image.OSVersion
		view["vmAgent"] = agentView(doc, since)
	}
	if d, on := DiagnosticsOf(doc); on {
		view["bootDiagnostics"] = d.bootView()
	}
	return view
}

func ImageOf(doc behaviour.Object) catalog.Image {
	return catalog.FindImage(behaviour.Text(doc, "properties.storageProfile.imageReference.publisher"),
		behaviour.Text(doc, "properties.storageProfile.imageReference.offer"),
		behaviour.Text(doc, "properties.storageProfile.imageReference.sku"),
		behaviour.Text(doc, "properties.storageProfile.osDisk.osType"))
}

func diskViews(doc behaviour.Object, created string) []any {
	views := []any{}
	view := func(name string) {
		if name != "" {
			views = append(views,
				behaviour.Object{"name": name, "statuses": []any{provisioned("succeeded", "Provisioning succeeded", created)}})
		}
	}
	view(behaviour.Text(doc, "properties.storageProfile.osDisk.name"))
	for _, disk := range behaviour.Objects(doc, "properties.storageProfile.dataDisks") {
		view(behaviour.Text(disk, "name"))
	}
	return views
}

func provisioned(code, display, at string) behaviour.Object {
	return behaviour.Object{"code": "ProvisioningState/" + code, "level": "Info", "displayStatus": display, "time": at}
}

// Statuses returns the provisioning state and the power state as an instance view shows them.
func Statuses(provisioning, power, created string) []any {
	var all []any
	switch provisioning {
	case schema.Succeeded, "":
		all = append(all, provisioned("succeeded", "Provisioning succeeded", created))
	case schema.Failed:
		status := provisioned("failed", "Provisioning failed", created)
		status["level"] = "Error"
		all = append(all, status)
	default: // Creating, Updating, Deleting
		all = append(all, provisioned(strings.ToLower(provisioning), provisioning, created))
	}
	if power != "" {
		all = append(all, behaviour.Object{"code": "PowerState/" + power, "level": "Info", "displayStatus": "VM " + power})
	}
	return all
}
