package disk

import csispec "github.com/container-storage-interface/spec/lib/go/csi"

// LUNKey is the key of the LUN in a publish context, for the node service.
const LUNKey = lunKey

// CheckVolume returns an error with the code InvalidArgument if the disk of a volume context cannot have a capability.
func CheckVolume(request string, volumeContext map[string]string, capability *csispec.VolumeCapability) error {
	shares, err := sharesOf(volumeContext)
	if err != nil {
		return err
	}
	return checkCapabilities(request, shares, capability)
}

// Value returns a value of a volume context or publish context, by a key in any letter case.
func Value(values map[string]string, key string) string { return lookup(values, key) }

// Segments returns the topology of a node in a zone, "" for a region without zones or a machine without one.
func Segments(driver, zone string) map[string]string {
	segments := map[string]string{zoneKey(driver): zone}
	if zone != "" {
		segments[wellKnownZone] = zone
	}
	return segments
}
