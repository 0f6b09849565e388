package manageddisk

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

func disks() behaviour.Type {
	return behaviour.Type{
		Name:    schema.DiskType,
		Style:   behaviour.Disk(),
		Where:   behaviour.Located,
		Own:     append(ownDiskFields(), "managedBy", "managedByExtended"),
		Fill:    fillDisk,
		Settle:  settleDisk,
		Refuse:  refuseAttached,
		Show:    showAccepted,
		Actions: accessActions(),
	}
}

// ownDiskFields returns the fields that Azure sets on disks and snapshots.
func ownDiskFields() []string {
	return []string{schema.Runtime, "sku.tier", "properties.timeCreated", "properties.burstingEnabledTime",
		"properties.uniqueId", "properties.diskState",
		"properties.diskSizeBytes", "properties.creationData.sourceUniqueId"}
}

// showAccepted marks the disk or snapshot that the answer to a PUT shows before the work begins, as API versions before 2022-03-02 do.
func showAccepted(c *behaviour.Call, view behaviour.Object) {
	const last = "2022-03-02"
	written := c.Verb == behaviour.Create || c.Verb == behaviour.Update
	if written && schema.State(view) == schema.Updating && c.Query.Get("api-version") < last {
		behaviour.Set(view, "properties.isArmResource", true)
		if c.Verb == behaviour.Update {
			behaviour.Set(view, "properties.colocationConstraints", behaviour.Object{})
			behaviour.Set(view, "properties.faultDomain", 0)
		}
	}
}

const (
	MinDiskGB = 1
	maxDiskGB = 65536
)

func fillDisk(c *behaviour.Call) error {
	if err := schema.CheckShape(c); err != nil {
		return err
	}
	schema.KeepRest(c)
	if err := schema.CheckZones(c); err != nil {
		return err
	}
	if err := fillCreation(c, "disk"); err != nil {
		return err
	}
	if behaviour.At(c.Doc, "properties.diskSizeGB") == nil && c.Old == nil &&
		strings.EqualFold(behaviour.Text(c.Doc, "properties.creationData.createOption"), "Empty") {
		return behaviour.Invalid("InvalidParameter", "Required parameter 'disk.diskSizeGB' is missing (null).").At("disk.diskSizeGB")
	}
	if err := checkSKU(c); err != nil {
		return err
	}
	return checkSize(c)
}

// fillCreation checks the source of a new disk or snapshot.
func fillCreation(c *behaviour.Call, kind string) error {
	option := behaviour.Text(c.Doc, "properties.creationData.createOption")
	if option == "" {
		return behaviour.Invalid("InvalidParameter", "Required parameter '%s.creationData.createOption' is missing (null).",
			kind).At(kind + ".creationData.createOption")
	}
	if err := unchangedCreation(c); err != nil || c.Old != nil {
		return err
	}
	switch strings.ToLower(option) {
	case "fromimage":
		describeImage(c)
		return nil
	case "copy", "copystart", "restore":
		return fillCopy(c, kind, option)
	}
	return nil
}

// fillCopy checks the source of a copy, and takes its size.
func fillCopy(c *behaviour.Call, kind, option string) error {
	source := azure.ID(behaviour.Text(c.Doc, "properties.creationData.sourceResourceId"))
	if source == "" {
		return behaviour.Invalid("InvalidParameter", "Required parameter '%s.creationData.sourceResourceId' is missing (null).",
			kind).At(kind + ".creationData.sourceResourceId")
	}
	doc, ok := c.Get(source)
	if !ok {
		return behaviour.Refusal(404, "ResourceNotFound", "The source resource %s of %s '%s' was not found.", source, kind, c.ID.Name())
	}
	if percent := copied(c.World, doc); percent < 100 {
		return behaviour.Conflict("OperationNotAllowed", "The source snapshot %s of %s '%s' is not complete: its completionPercent is %d.",
			source, kind, c.ID.Name(), percent)
	}
	if from := behaviour.Text(doc, "location"); from != c.Location() && !strings.EqualFold(option, "CopyStart") {
		return behaviour.Invalid("InvalidParameter",
			"The source resource %s is in location '%s' and %s '%s' in '%s'. Use createOption CopyStart to copy between regions.", source,
			from, kind, c.ID.Name(), c.Location()).At(kind + ".creationData.sourceResourceId")
	}
	behaviour.Default(c.Doc, "properties.creationData.sourceUniqueId", behaviour.Text(doc, "properties.uniqueId"))
	if access := behaviour.Text(doc, "properties.publicNetworkAccess"); access != "" {
		behaviour.Default(c.Doc, "properties.publicNetworkAccess", access)
	}
	if schema.Number(c.Doc, "properties.diskSizeGB") == 0 {
		if kind == "disk" {
			behaviour.Set(c.Doc, "properties.diskSizeGB", schema.Number(doc, "properties.diskSizeGB"))
		}
	} else if schema.Number(c.Doc, "properties.diskSizeGB") < schema.Number(doc, "properties.diskSizeGB") {
		return behaviour.Invalid("InvalidParameter",
			"The value '%d' of parameter 'diskSizeGB' is smaller than the size %d of the source %s.",
			schema.Number(c.Doc, "properties.diskSizeGB"), schema.Number(doc, "properties.diskSizeGB"), source).At(kind + ".diskSizeGB")
	}
	return nil
}

func unchangedCreation(c *behaviour.Call) error {
	for _, field := range []string{"createOption", "sourceResourceId", "sourceUri", "imageReference"} {
		if c.Changed("properties.creationData." + field) {
			return behaviour.Conflict("PropertyChangeNotAllowed", "Changing property '%s' of existing disk %s is not allowed.", field,
				c.ID.Name()).At(field)
		}
	}
	if c.Changed("zones") {
		return behaviour.Conflict("PropertyChangeNotAllowed", "Changing property 'zones' of existing disk %s is not allowed.",
			c.ID.Name()).At("zones")
	}
	return nil
}

func checkSKU(c *behaviour.Call) error {
	known := []string{"Standard_LRS", "Premium_LRS", "StandardSSD_LRS", "UltraSSD_LRS", "Premium_ZRS", "StandardSSD_ZRS", "PremiumV2_LRS"}
	name := behaviour.Text(c.Doc, "sku.name")
	if name != "" && !schema.ContainsFold(known, name) {
		return behaviour.Invalid("InvalidParameter",
			"The value '%s' of parameter 'disk.sku.name' is invalid. The allowed values are: %s.", name,
			strings.Join(known, ", ")).At("disk.sku.name")
	}
	return nil
}

func checkSize(c *behaviour.Call) error {
	at := behaviour.At(c.Doc, "properties.diskSizeGB")
	size, ok := behaviour.Int(c.Doc, "properties.diskSizeGB")
	if at != nil && (!ok || size < MinDiskGB || size > maxDiskGB) {
		return behaviour.Invalid("InvalidParameter",
			"The value '%v' of parameter 'disk.diskSizeGB' is out of range. Value must be between '%d' and '%d', inclusive.", at,
			MinDiskGB, maxDiskGB).At("disk.diskSizeGB")
	}
	if was := schema.Number(c.Old, "properties.diskSizeGB"); at != nil && size < was {
		return behaviour.Conflict("OperationNotAllowed", "Disk %s of size %d GB cannot be shrunk to %d GB: a disk can only grow.",
			c.ID.Name(), was, size).At("disk.diskSizeGB")
	} else if attached := behaviour.Text(c.Old, "managedBy") != ""; attached && was <= largestOnline && size > largestOnline &&
		!provisionable(behaviour.Text(c.Doc, "sku.name")) {
		return behaviour.Invalid("InvalidParameter", "Disk %s of size %d GB cannot be resized to %d GB while it is attached: detach it, "+
			"or deallocate its machine, first.", c.ID.Name(), was, size).At("disk.diskSizeGB")
	}
	return nil
}

// largestOnline is the size in GiB beyond which smaller disks cannot grow while they are attached.
const largestOnline = 4096

func settleDisk(c *behaviour.Call) error {
	behaviour.Default(c.Doc, "sku.name", "Standard_LRS")
	copySourceFields(c)
	if schema.Number(c.Doc, "properties.diskSizeGB") == 0 { // from an image or an upload
		behaviour.Set(c.Doc, "properties.diskSizeGB", 30)
	}
	if strings.EqualFold(behaviour.Text(c.Doc, "properties.creationData.createOption"), "Upload") {
		behaviour.Default(c.Doc, "properties.diskState", "ReadyToUpload")
	}
	if c.Changed("properties.diskSizeGB") || c.Changed("sku.name") {
		behaviour.Remove(c.Doc, "properties.tier")
	}
	diskFacts(c.World, c.Doc)
	fillPerformance(c)
	return nil
}

// fillPerformance completes the settings of disks that are shared, burst or have a performance of their own.
func fillPerformance(c *behaviour.Call) {
	if behaviour.Bool(c.Doc, "properties.burstingEnabled") {
		behaviour.Default(c.Doc, "properties.burstingEnabledTime", behaviour.Stamp(c.Now()))
	}
	if !provisionable(behaviour.Text(c.Doc, "sku.name")) {
		return
	}
	const sector = 4096
	behaviour.Default(c.Doc, "properties.creationData.logicalSectorSize", sector)
	if schema.Number(c.Doc, "properties.maxShares") > 1 {
		for _, limit := range []string{"diskIOPSRead", "diskMBpsRead"} {
			behaviour.Default(c.Doc, "properties."+limit+"Only", behaviour.At(c.Doc, "properties."+limit+"Write"))
		}
	}
}

// copySourceFields copies the fields that a copy has from its source.
func copySourceFields(c *behaviour.Call) {
	source, ok := c.Get(azure.ID(behaviour.Text(c.Doc, "properties.creationData.sourceResourceId")))
	if !ok {
		return
	}
	for _, field := range []string{"properties.osType", "properties.hyperVGeneration"} {
		if v := behaviour.At(source, field); v != nil {
			behaviour.Default(c.Doc, field, v)
		}
	}
	if schema.Number(c.Doc, "properties.diskSizeGB") == 0 {
		behaviour.Set(c.Doc, "properties.diskSizeGB", schema.Number(source, "properties.diskSizeGB"))
	}
}

func refuseAttached(c *behaviour.Call) error {
	if by := behaviour.Text(c.Old, "managedBy"); by != "" {
		return behaviour.Conflict("OperationNotAllowed", "Disk %s is attached to VM %s.", c.ID.Name(), by)
	}
	return nil
}

// signedURL returns a signed URL to a part of the content of a disk.
func signedURL(c *behaviour.Call, blob string) string {
	return "https://md-" + schema.Hex32(c)[:12] + ".z1.blob.storage.azure.net/" + schema.Hex32(c)[:12] + "/" + blob +
		"?sv=2018-03-28&sr=b&si=" + c.GUID() + "&sig=" + schema.Hex32(c)
}

// accessActions returns the actions that grant and revoke a signed URL to the content.
func accessActions() map[string]behaviour.Action {
	both := behaviour.AsyncOperation | behaviour.Location
	return map[string]behaviour.Action{
		"beginGetAccess": {
			Long: true, Headers: both, Busy: "-",
			Do: func(c *behaviour.Call) (any, error) {
				if err := schema.CheckShape(c); err != nil {
					return nil, err
				}
				if behaviour.Text(c.Body, "access") == "" {
					return nil, behaviour.Invalid("InvalidParameter",
						"Required parameter 'grantAccessData.access' is missing (null).").At("grantAccessData.access")
				}
				if _, ok := behaviour.Int(c.Body, "durationInSeconds"); !ok {
					return nil, behaviour.Invalid("InvalidParameter",
						"Required parameter 'grantAccessData.durationInSeconds' is missing (null).").At("grantAccessData.durationInSeconds")
				}
				if state := behaviour.Text(c.Old, "properties.diskState"); state == "Attached" {
					return nil, behaviour.Conflict("OperationNotAllowed", "Access to the disk %s cannot be granted: it is in state %s.",
						c.ID.Name(), state)
				}
				return nil, nil
			},
			Settle: func(c *behaviour.Call) (any, error) {
				behaviour.Set(c.Doc, "properties.diskState", "ActiveSAS")
				signed := behaviour.Object{"accessSAS": signedURL(c, "abcd")}
				if behaviour.Bool(c.Body, "getSecureVMGuestStateSAS") {
					signed["securityDataAccessSAS"] = signedURL(c, c.GUID()+"_vmgs")
					if strings.HasPrefix(behaviour.Text(c.Doc, "properties.securityProfile.securityType"), "ConfidentialVM") {
						signed["securityMetadataAccessSAS"] = signedURL(c, c.GUID()+"_vmmd")
					}
				}
				return signed, nil
			},
		},
		"endGetAccess": {
			Long: true, Headers: both, Busy: "-",
			Settle: func(c *behaviour.Call) (any, error) {
				if behaviour.Text(c.Doc, "properties.diskState") == "ActiveSAS" {
					behaviour.Set(c.Doc, "properties.diskState", "Unattached")
				}
				return nil, nil
			},
		},
	}
}
