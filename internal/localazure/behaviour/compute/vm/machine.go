package vm

import (
	"cmp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/manageddisk"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/core/catalog"
)

// SizeOf returns a size of virtual machines, or an error for an unknown name.
func SizeOf(name, target string) (catalog.Size, error) {
	if name == "" {
		return catalog.Size{}, behaviour.Invalid("InvalidParameter", "Required parameter '%s' is missing (null).", target).At(target)
	}
	size, ok := catalog.FindSize(name)
	if !ok {
		return size,
			behaviour.Invalid("InvalidParameter",
				"The value %s provided for the VM size is not valid. The valid sizes in the current region are: %s. Find out more "+
					"on the valid VM sizes in each region at https://aka.ms/azure-regions.",
				name, strings.Join(sizeNames(), ",")).At(target)
	}
	return size, nil
}

// sizeNames returns the names of all sizes. Every region has all of them.
func sizeNames() []string {
	var names []string
	for _, s := range catalog.Sizes() {
		names = append(names, s.Name)
	}
	return names
}

// KeepCustomData moves the custom data of a machine or of a scale set's model to where clients never see it.
func KeepCustomData(doc, model behaviour.Object) {
	if text := behaviour.Text(model, "osProfile.customData"); text != "" {
		behaviour.Set(doc, schema.Runtime+".customData", text)
	}
}

// CustomData returns the custom data of a stored machine or scale set, in base64.
func CustomData(doc behaviour.Object) string {
	return behaviour.Text(doc, schema.Runtime+".customData")
}

// refusedUsers are the names that the model of osProfile.adminUsername documents as disallowed.
var refusedUsers = strings.Fields("administrator admin user user1 test user2 test1 user3 admin1 1 123 a actuser adm admin2 aspnet " +
	"backup console david guest john owner root server sql support support_388945a0 sys test2 test3 user4 user5")

// CheckOSProfile refuses a user that Azure does not make, and keys of types that Azure does not know.
func CheckOSProfile(model behaviour.Object) error {
	user := behaviour.Text(model, "osProfile.adminUsername")
	if slices.Contains(refusedUsers, strings.ToLower(user)) {
		return behaviour.Invalid("InvalidParameter", "The Admin Username specified is not allowed.").At("adminUsername")
	}
	for _, key := range behaviour.Objects(model, "osProfile.linuxConfiguration.ssh.publicKeys") {
		data := behaviour.Text(key, "keyData")
		if !strings.HasPrefix(data, "ssh-rsa ") && !strings.HasPrefix(data, "ssh-ed25519 ") {
			const field = "linuxConfiguration.ssh.publicKeys.keyData"
			return behaviour.Invalid("InvalidParameter", "The value of parameter %s is invalid.", field).At(field)
		}
	}
	return nil
}

// FillOSProfile completes the OS profile of a machine or of a scale set's model, and removes its secrets.
func FillOSProfile(model behaviour.Object, windows, patches bool) {
	profile := behaviour.Sub(model, "osProfile")
	if profile == nil {
		return
	}
	for _, secret := range []string{"adminPassword", "customData"} {
		delete(profile, secret)
	}
	behaviour.Default(profile, "secrets", []any{})
	behaviour.Default(profile, "allowExtensionOperations", true)
	behaviour.Default(profile, "requireGuestProvisionSignal", true)
	if windows {
		behaviour.Default(profile, "windowsConfiguration.provisionVMAgent", true)
		behaviour.Default(profile, "windowsConfiguration.enableAutomaticUpdates", true)
		if patches {
			behaviour.Default(profile, "windowsConfiguration.patchSettings.patchMode", "AutomaticByOS")
			behaviour.Default(profile, "windowsConfiguration.patchSettings.assessmentMode", "ImageDefault")
			behaviour.Default(profile, "windowsConfiguration.enableVMAgentPlatformUpdates", true)
		}
		return
	}
	behaviour.Default(profile, "linuxConfiguration.disablePasswordAuthentication",
		behaviour.Array(profile, "linuxConfiguration.ssh.publicKeys") != nil)
	behaviour.Default(profile, "linuxConfiguration.provisionVMAgent", true)
	if patches {
		behaviour.Default(profile, "linuxConfiguration.patchSettings.patchMode", "ImageDefault")
		behaviour.Default(profile, "linuxConfiguration.patchSettings.assessmentMode", "ImageDefault")
	}
}

// FillOSDisk completes the storage profile of a machine or a model from the image and the size.
func FillOSDisk(w behaviour.World, model behaviour.Object, size catalog.Size) catalog.Image {
	storage := behaviour.Sub(model, "storageProfile")
	if storage == nil {
		storage = behaviour.Object{}
		model["storageProfile"] = storage
	}
	image := modelImage(w, model)
	behaviour.Default(storage, "osDisk.osType", image.OS)
	behaviour.Default(storage, "osDisk.createOption", "FromImage")
	behaviour.Default(storage, "osDisk.caching", "ReadWrite")
	if behaviour.At(storage, "osDisk.vhd") == nil && behaviour.Text(storage, "osDisk.createOption") != "Attach" {
		behaviour.Default(storage, "osDisk.managedDisk.storageAccountType", manageddisk.DefaultDiskSKU(size))
		behaviour.Default(storage, "osDisk.diskSizeGB", image.DiskGiB)
	}
	return image
}

// modelImage returns the image of a model.
func modelImage(w behaviour.World, model behaviour.Object) catalog.Image {
	os := behaviour.Text(model, "storageProfile.osDisk.osType")
	if behaviour.Sub(model, "osProfile.windowsConfiguration") != nil {
		os = "Windows"
	}
	ref := "storageProfile.imageReference."
	if id := azure.ID(behaviour.Text(model, ref+"id")); id != "" {
		if doc, ok := w.Get(id); ok {
			os = cmp.Or(behaviour.Text(doc, "properties.storageProfile.osDisk.osType"),
				behaviour.Text(doc, "properties.osType"), os)
		}
	}
	return catalog.FindImage(behaviour.Text(model, ref+"publisher"), behaviour.Text(model, ref+"offer"),
		behaviour.Text(model, ref+"sku"), os)
}

// ExactVersion writes the version of the image into a storage profile.
func ExactVersion(storage behaviour.Object, image catalog.Image) {
	ref := behaviour.Sub(storage, "imageReference")
	if ref == nil || ref["publisher"] == nil {
		return
	}
	version := behaviour.Text(ref, "version")
	if version == "" || strings.EqualFold(version, "latest") {
		version = image.Version
	}
	behaviour.Default(ref, "exactVersion", version)
}
