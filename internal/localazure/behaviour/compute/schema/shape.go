package schema

import (
	"strings"

	"kaz/internal/localazure/behaviour"
)

// kind is the JSON type of a member of a request.
type kind string

const (
	anObject    kind = "an object"
	aText       kind = "a string"
	aNumber     kind = "a whole number"
	aFlag       kind = "a boolean"
	someObjects kind = "an array of objects"
	someTexts   kind = "an array of strings"
)

// shapes returns the JSON types of the members that this provider reads, by their names. A name has the same type
// everywhere in the provider's documents.
func shapes() map[string]kind {
	all := map[string]kind{}
	for k, names := range map[kind][]string{
		anObject: {
			"properties", "sku", "identity", "userAssignedIdentities", "virtualMachineProfile", "osProfile", "storageProfile",
			"osDisk", "managedDisk", "diffDiskSettings", "imageReference", "networkProfile", "networkProfileConfiguration",
			"hardwareProfile", "subnet", "publicIPAddressConfiguration", "networkSecurityGroup", "dnsSettings", "creationData",
			"upgradePolicy", "automaticOSUpgradePolicy", "scaleInPolicy", "protectionPolicy", "windowsConfiguration",
			"linuxConfiguration", "patchSettings", "ssh", "availabilitySet", "virtualMachineScaleSet", "diagnosticsProfile",
			"bootDiagnostics", "encryption",
		},
		someObjects: {
			"networkInterfaceConfigurations", "ipConfigurations", "dataDisks", "networkInterfaces", "secrets", "publicKeys",
			"loadBalancerBackendAddressPools", "applicationGatewayBackendAddressPools", "applicationSecurityGroups", "ipTags",
			"dataDisksToAttach", "dataDisksToDetach",
		},
		someTexts: {"zones", "instanceIds", "rules", "dnsServers"},
		aText: {
			"id", "name", "tier", "location", "vmSize", "computerName", "computerNamePrefix", "adminUsername", "publisher", "offer",
			"version", "exactVersion", "osType", "caching", "storageAccountType", "mode", "orchestrationMode", "createOption",
			"sourceResourceId", "privateIPAddressVersion", "publicIPAddressVersion", "priority", "evictionPolicy", "publicKey",
			"diskId", "access", "type", "deleteOption",
		},
		aNumber: {
			"capacity", "lun", "diskSizeGB", "platformFaultDomainCount", "platformUpdateDomainCount", "idleTimeoutInMinutes",
			"maxShares", "durationInSeconds", "diskIOPSReadWrite", "diskMBpsReadWrite",
		},
		aFlag: {
			"primary", "enableIPForwarding", "enableAcceleratedNetworking", "singlePlacementGroup", "overprovision", "toBeDetached",
			"incremental", "protectFromScaleIn", "protectFromScaleSetActions", "provisionVMAgent", "enableAutomaticUpdates",
		},
	} {
		for _, name := range names {
			all[name] = k
		}
	}
	return all
}

// CheckShape refuses a request with a member of the wrong JSON type.
func CheckShape(c *behaviour.Call) error {
	known := shapes()
	return checkObject(known, c.Body, "")
}

func checkObject(known map[string]kind, o behaviour.Object, path string) error {
	for _, key := range SortedKeys(o) {
		value, at := o[key], path+key
		if want, ok := known[key]; ok && value != nil && !fits(value, want) && !skuOfImage(path, key, value) {
			e := behaviour.Invalid("InvalidRequestContent",
				"The request content was invalid and could not be deserialized: '%s' must be %s.", at, want).At(at)
			e.Gateway = true
			return e
		}
		if key == "tags" {
			continue
		}
		if err := checkInside(known, value, at); err != nil {
			return err
		}
	}
	return nil
}

func checkInside(known map[string]kind, value any, at string) error {
	switch v := value.(type) {
	case behaviour.Object:
		return checkObject(known, v, at+".")
	case []any:
		for _, x := range v {
			if err := checkInside(known, x, at); err != nil {
				return err
			}
		}
	}
	return nil
}

func fits(value any, want kind) bool {
	switch want {
	case anObject:
		_, ok := value.(behaviour.Object)
		return ok
	case someObjects:
		return allOf[behaviour.Object](value)
	case someTexts:
		return allOf[string](value)
	case aText:
		_, ok := value.(string)
		return ok
	case aNumber:
		_, ok := behaviour.Int(behaviour.Object{"n": value}, "n")
		return ok
	}
	switch v := value.(type) {
	case bool:
		return true
	case string:
		return strings.EqualFold(v, "true") || strings.EqualFold(v, "false")
	}
	return false
}

func allOf[T any](value any) bool {
	list, ok := value.([]any)
	for _, x := range list {
		if _, is := x.(T); !is {
			return false
		}
	}
	return ok
}

// skuOfImage reports whether a member is the SKU of an image, which is a string. All other SKUs are objects.
func skuOfImage(path, key string, value any) bool {
	const image = "imageReference."
	_, isText := value.(string)
	return key == "sku" && isText && len(path) >= len(image) && path[len(path)-len(image):] == image
}
