package compute

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/catalog"
)

// sizeOf finds a size of virtual machines, or refuses its name.
func sizeOf(name, target string) (catalog.Size, error) {
	if name == "" {
		return catalog.Size{}, behaviour.Invalid("InvalidParameter", "Required parameter '%s' is missing (null).", target).At(target)
	}
	size, ok := catalog.FindSize(name)
	if !ok {
		return size, behaviour.Invalid("InvalidParameter", "The value %s provided for the VM size is not valid. The valid sizes in the current region are: %s. Find out more on the valid VM sizes in each region at https://aka.ms/azure-regions.",
			name, strings.Join(sizeNames(), ",")).At(target)
	}
	return size, nil
}

// sizeNames are the names of the sizes; all regions have all of them.
func sizeNames() []string {
	var names []string
	for _, s := range catalog.Sizes() {
		names = append(names, s.Name)
	}
	return names
}

// fillOSProfile completes the operating system's part of a machine or of a scale
// set's model, and takes away what Azure never shows.
func fillOSProfile(model behaviour.Object, windows, patches bool) {
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
	behaviour.Default(profile, "linuxConfiguration.disablePasswordAuthentication", behaviour.Array(profile, "linuxConfiguration.ssh.publicKeys") != nil)
	behaviour.Default(profile, "linuxConfiguration.provisionVMAgent", true)
	if patches {
		behaviour.Default(profile, "linuxConfiguration.patchSettings.patchMode", "ImageDefault")
		behaviour.Default(profile, "linuxConfiguration.patchSettings.assessmentMode", "ImageDefault")
	}
}

// fillOSDisk completes the storage profile of a machine or a model with what comes
// from the image and the size.
func fillOSDisk(w behaviour.World, model behaviour.Object, size catalog.Size) catalog.Image {
	storage := behaviour.Sub(model, "storageProfile")
	if storage == nil {
		storage = behaviour.Object{}
		model["storageProfile"] = storage
	}
	image := modelImage(w, model)
	behaviour.Default(storage, "osDisk.osType", image.OS)
	behaviour.Default(storage, "osDisk.createOption", "FromImage")
	behaviour.Default(storage, "osDisk.caching", "None")
	if behaviour.At(storage, "osDisk.vhd") == nil && behaviour.Text(storage, "osDisk.createOption") != "Attach" {
		behaviour.Default(storage, "osDisk.managedDisk.storageAccountType", defaultDiskSKU(size))
		behaviour.Default(storage, "osDisk.diskSizeGB", image.DiskGiB)
	}
	return image
}

func defaultDiskSKU(size catalog.Size) string {
	if size.Premium {
		return "Premium_LRS"
	}
	return "Standard_LRS"
}

// modelImage is the image that a model names.
func modelImage(w behaviour.World, model behaviour.Object) catalog.Image {
	os := behaviour.Text(model, "storageProfile.osDisk.osType")
	if behaviour.Sub(model, "osProfile.windowsConfiguration") != nil {
		os = "Windows"
	}
	ref := "storageProfile.imageReference."
	if id := azure.ID(behaviour.Text(model, ref+"id")); id != "" {
		if doc, ok := w.Get(id); ok {
			os = first(behaviour.Text(doc, "properties.storageProfile.osDisk.osType"), behaviour.Text(doc, "properties.osType"), os)
		}
	}
	return catalog.FindImage(behaviour.Text(model, ref+"publisher"), behaviour.Text(model, ref+"offer"), behaviour.Text(model, ref+"sku"), os)
}

// exactVersion writes which version of the image a machine got.
func exactVersion(storage behaviour.Object, image catalog.Image) {
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

// fillIdentity completes the identity of a machine or a scale set; none is not shown.
func fillIdentity(c *behaviour.Call) {
	kind := strings.ToLower(behaviour.Text(c.Doc, "identity.type"))
	if kind == "none" || kind == "" {
		delete(c.Doc, "identity")
		return
	}
	if strings.Contains(kind, "systemassigned") {
		if behaviour.Text(c.Doc, "identity.principalId") == "" {
			behaviour.Set(c.Doc, "identity.principalId", first(behaviour.Text(c.Old, "identity.principalId"), c.GUID()))
			behaviour.Set(c.Doc, "identity.tenantId", c.TenantOf(c.ID.Subscription()))
		}
	}
	for id, x := range behaviour.Sub(c.Doc, "identity.userAssignedIdentities") {
		user, _ := x.(behaviour.Object)
		if user == nil {
			user = behaviour.Object{}
			behaviour.Sub(c.Doc, "identity.userAssignedIdentities")[id] = user
		}
		if doc, ok := c.Get(azure.ID(id)); ok {
			user["principalId"], user["clientId"] = behaviour.Text(doc, "properties.principalId"), behaviour.Text(doc, "properties.clientId")
		}
		behaviour.Default(user, "principalId", c.GUID())
		behaviour.Default(user, "clientId", c.GUID())
	}
}

// checkPlace refuses a region that there is not, and zones that the region does
// not have.
func checkPlace(c *behaviour.Call) error {
	region, known := catalog.FindRegion(c.Location())
	if !known {
		e := behaviour.Invalid("LocationNotAvailableForResourceType", "The provided location '%s' is not available for resource type '%s'. List of available regions for the resource type is '%s'.", c.Location(), c.Type.Name, strings.Join(regionNames(), ","))
		e.Gateway = true
		return e
	}
	for _, zone := range behaviour.Texts(c.Doc, "zones") {
		if !contains(region.Zones, zone) {
			e := behaviour.Invalid("AvailabilityZoneNotSupported", "The zone(s) '%s' for resource '%s/%s' is not supported. The supported zones for location '%s' are '%s'", zone, c.Type.Name, c.ID.Name(), region.Name, strings.Join(region.Zones, ","))
			e.Gateway = true
			return e
		}
	}
	return nil
}

func regionNames() []string {
	var names []string
	for _, r := range catalog.Regions() {
		names = append(names, r.Name)
	}
	return names
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if strings.EqualFold(x, s) {
			return true
		}
	}
	return false
}

// unchangeable refuses a change of what a resource keeps all its life.
func unchangeable(c *behaviour.Call, paths ...string) error {
	for _, path := range paths {
		if c.Changed(path) {
			name := path[strings.LastIndexByte(path, '.')+1:]
			return behaviour.Conflict("PropertyChangeNotAllowed", "Changing property '%s' is not allowed.", strings.TrimPrefix(path, "properties.")).At(name)
		}
	}
	return nil
}

// base36 is the form in which instance ids are part of computer names: six digits.
func base36(n int) string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	const width = 6
	var text [width]byte
	for i := width - 1; i >= 0; i-- {
		text[i] = digits[n%len(digits)]
		n /= len(digits)
	}
	return string(text[:])
}
