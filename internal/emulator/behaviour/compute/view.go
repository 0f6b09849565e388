package compute

import (
	"strings"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/catalog"
)

// agentVersion is that of the guest agent in the recordings.
const agentVersion = "2.7.41491.1149"

// instanceView is what a machine says of itself while it runs.
func instanceView(doc behaviour.Object) behaviour.Object {
	power, created := PowerOf(doc), behaviour.Text(doc, "properties.timeCreated")
	since := first(behaviour.Text(doc, runtime+".since"), created)
	view := behaviour.Object{
		"disks":            diskViews(doc, created),
		"hyperVGeneration": generation(doc),
		"statuses":         statuses(state(doc), power, created),
	}
	if power == Running {
		image := imageOf(doc)
		view["computerName"] = behaviour.Text(doc, "properties.osProfile.computerName")
		view["osName"], view["osVersion"] = image.OSName, image.OSVersion
		view["vmAgent"] = behaviour.Object{
			"vmAgentVersion": agentVersion,
			"statuses": []any{behaviour.Object{
				"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Ready",
				"message": "GuestAgent is running and processing the extensions.", "time": since,
			}},
		}
	}
	return view
}

func imageOf(doc behaviour.Object) catalog.Image {
	return catalog.FindImage(behaviour.Text(doc, "properties.storageProfile.imageReference.publisher"),
		behaviour.Text(doc, "properties.storageProfile.imageReference.offer"),
		behaviour.Text(doc, "properties.storageProfile.imageReference.sku"),
		behaviour.Text(doc, "properties.storageProfile.osDisk.osType"))
}

func generation(doc behaviour.Object) string {
	sku := strings.ToLower(behaviour.Text(doc, "properties.storageProfile.imageReference.sku"))
	if strings.Contains(sku, "gen2") || strings.HasSuffix(sku, "-g2") || strings.Contains(sku, "arm64") {
		return "V2"
	}
	return "V1"
}

func diskViews(doc behaviour.Object, created string) []any {
	views := []any{}
	view := func(name string) {
		if name != "" {
			views = append(views, behaviour.Object{"name": name, "statuses": []any{provisioned("succeeded", "Provisioning succeeded", created)}})
		}
	}
	view(behaviour.Text(doc, "properties.storageProfile.osDisk.name"))
	each(doc, "properties.storageProfile.dataDisks", func(disk behaviour.Object) { view(behaviour.Text(disk, "name")) })
	return views
}

func provisioned(code, display, at string) behaviour.Object {
	return behaviour.Object{"code": "ProvisioningState/" + code, "level": "Info", "displayStatus": display, "time": at}
}

// statuses are the provisioning and the power state in the form of the view.
func statuses(provisioning, power, created string) []any {
	var all []any
	switch provisioning {
	case succeeded, "":
		all = append(all, provisioned("succeeded", "Provisioning succeeded", created))
	case failed:
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
