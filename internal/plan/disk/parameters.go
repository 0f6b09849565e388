package disk

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/plan/parameter"
)

// Parameters is what a StorageClass, a VolumeAttributesClass or a persistent volume says of a disk. Zero fields are
// not given.
type Parameters struct {
	SKU                 string
	CachingMode         string
	FSType              string
	Location            string
	ResourceGroup       string
	Subscription        string
	DiskName            string
	IOPS, MBps          *int64
	LogicalSectorSize   *int64
	Tags                map[string]string
	EncryptionSet       azure.ID
	EncryptionType      string
	WriteAccelerator    bool
	MaxShares           int64
	NetworkAccessPolicy string
	PublicNetworkAccess string
	DiskAccess          azure.ID
	Bursting            *bool
	PerformancePlus     *bool
	Profile             string
	DeviceSettings      map[string]string // by the path below the device's directory in /sys/block

	// The provisioner says for what it creates the volume.
	PVCName, PVCNamespace, PVName string

	tags, delimiter string
}

// parameters returns the table of keys.
func parameters() []parameter.Key[Parameters] {
	return []parameter.Key[Parameters]{
		{Name: "skuName", Alias: "storageAccountType", Mutable: true,
			Read: oneOf(func(p *Parameters) *string { return &p.SKU }, skuNames()...)},
		{Name: "diskIOPSReadWrite", Mutable: true, Read: number(func(p *Parameters) **int64 { return &p.IOPS }, 1)},
		{Name: "diskMBpsReadWrite", Mutable: true, Read: number(func(p *Parameters) **int64 { return &p.MBps }, 1)},
		cachingKey(),
		{Name: "fsType", Read: parameter.OneOfFold(func(p *Parameters) *string { return &p.FSType }, append(fileSystems(), ntfs)...)},
		{Name: "location", Read: text(func(p *Parameters) *string { return &p.Location })},
		{Name: "resourceGroup", Read: text(func(p *Parameters) *string { return &p.ResourceGroup })},
		{Name: "subscriptionID", Read: text(func(p *Parameters) *string { return &p.Subscription })},
		{Name: "diskName", Read: text(func(p *Parameters) *string { return &p.DiskName })},
		{Name: "logicalSectorSize", Read: readSectorSize},
		{Name: "tags", Read: text(func(p *Parameters) *string { return &p.tags })},
		{Name: "tagValueDelimiter", Read: text(func(p *Parameters) *string { return &p.delimiter })},
		{Name: "diskEncryptionSetID", Read: id(func(p *Parameters) *azure.ID { return &p.EncryptionSet })},
		{Name: "diskEncryptionType", Read: oneOf(func(p *Parameters) *string { return &p.EncryptionType },
			"EncryptionAtRestWithCustomerKey", "EncryptionAtRestWithPlatformAndCustomerKeys", "EncryptionAtRestWithPlatformKey")},
		{Name: "writeAcceleratorEnabled", Read: readWriteAccelerator},
		{Name: "maxShares", Read: readMaxShares},
		{Name: "networkAccessPolicy", Read: oneOf(func(p *Parameters) *string { return &p.NetworkAccessPolicy }, networkPolicies()...)},
		{Name: "publicNetworkAccess", Read: oneOf(func(p *Parameters) *string { return &p.PublicNetworkAccess }, publicAccess()...)},
		{Name: "diskAccessID", Read: id(func(p *Parameters) *azure.ID { return &p.DiskAccess })},
		{Name: "enableBursting", Read: enabled(func(p *Parameters) **bool { return &p.Bursting })},
		{Name: "enablePerformancePlus", Read: enabled(func(p *Parameters) **bool { return &p.PerformancePlus })},
		{Name: "csi.storage.k8s.io/pvc/name", Read: text(func(p *Parameters) *string { return &p.PVCName })},
		{Name: "csi.storage.k8s.io/pvc/namespace", Read: text(func(p *Parameters) *string { return &p.PVCNamespace })},
		{Name: "csi.storage.k8s.io/pv/name", Read: text(func(p *Parameters) *string { return &p.PVName })},
		// Keys of the other driver that have no effect there or here. Classes that name them keep working.
		{Name: "kind", Read: parameter.Ignored[Parameters]},
		{Name: "enableAsyncAttach", Read: parameter.Ignored[Parameters]},
		{Name: "zoned", Read: parameter.Ignored[Parameters]},
		{Name: "attachDiskInitialDelay", Read: readDelay}, // no effect either, but the other driver refuses what is no number
		{Name: "useragent", Read: parameter.Ignored[Parameters]},
		{Name: "perfProfile", Read: readProfile},
	}
}

func cachingKey() parameter.Key[Parameters] {
	return parameter.Key[Parameters]{Name: "cachingMode",
		Read: oneOf(func(p *Parameters) *string { return &p.CachingMode }, "None", "ReadOnly", "ReadWrite")}
}

func networkPolicies() []string { return []string{"AllowAll", "DenyAll", "AllowPrivate"} }

func publicAccess() []string { return []string{"Enabled", "Disabled"} }

func skuNames() []string {
	return []string{"Standard_LRS", "StandardSSD_LRS", "StandardSSD_ZRS", "Premium_LRS", "Premium_ZRS", premiumV2, ultra}
}

const (
	premiumV2 = "PremiumV2_LRS"
	ultra     = "UltraSSD_LRS"
)

// ReadParameters reads the parameters of a StorageClass and the mutable parameters of a VolumeAttributesClass, which
// come first where both name a key. The error is a [parameter.Error].
func ReadParameters(class, mutable map[string]string) (Parameters, error) {
	var p Parameters
	keys := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(class)) {
		if !strings.HasPrefix(key, DeviceSetting) {
			keys[key] = class[key]
		} else if err := p.addSetting(key, class[key]); err != nil {
			return p, err
		}
	}
	if err := parameter.Read(&p, parameters(), keys); err != nil {
		return p, err
	}
	if err := parameter.Read(&p, parameter.Mutable(parameters()), mutable); err != nil {
		return p, err
	}
	var err error
	if p.Tags, err = readTags(p.tags, p.delimiter); err != nil {
		return p, err
	}
	return p, p.check()
}

// ReadMutable reads the parameters of a VolumeAttributesClass.
func ReadMutable(mutable map[string]string) (Parameters, error) {
	var p Parameters
	return p, parameter.Read(&p, parameter.Mutable(parameters()), mutable)
}

// check checks parameters that depend on each other.
func (p *Parameters) check() error {
	provisioned := p.SKU == ultra || p.SKU == premiumV2
	for _, c := range []struct {
		wrong               bool
		key, value, allowed string
	}{
		{p.IOPS != nil && !provisioned, "diskIOPSReadWrite", textOf(p.IOPS), "only with skuName " + ultra + " or " + premiumV2},
		{p.MBps != nil && !provisioned, "diskMBpsReadWrite", textOf(p.MBps), "only with skuName " + ultra + " or " + premiumV2},
		{p.LogicalSectorSize != nil && !provisioned, "logicalSectorSize", textOf(p.LogicalSectorSize),
			"only with skuName " + ultra + " or " + premiumV2},
		{provisioned && p.CachingMode != "" && p.CachingMode != "None", "cachingMode", p.CachingMode,
			"skuName " + p.SKU + " has no cache: None"},
		{p.NetworkAccessPolicy == "AllowPrivate" && p.DiskAccess == "", "networkAccessPolicy", p.NetworkAccessPolicy,
			"diskAccessID is missing"},
		{p.NetworkAccessPolicy != "AllowPrivate" && p.DiskAccess != "", "diskAccessID", string(p.DiskAccess),
			"only with networkAccessPolicy AllowPrivate"},
		{p.EncryptionType != "" && p.EncryptionSet == "", "diskEncryptionType", p.EncryptionType, "diskEncryptionSetID is missing"},
		{p.Subscription != "" && p.ResourceGroup == "", "subscriptionID", p.Subscription, "resourceGroup is missing"},
	} {
		if c.wrong {
			return &parameter.Error{Key: c.key, Value: c.value, Allowed: c.allowed}
		}
	}
	return p.checkProfile()
}

func textOf(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

// readTags splits tags, which are pairs with a separator of the user's choice.
func readTags(text, delimiter string) (map[string]string, error) {
	const allowed = `want KEY=VALUE, with a key without < > % & ? \ /`
	tags, bad := parameter.Pairs(text, delimiter)
	if bad != "" {
		return nil, &parameter.Error{Key: "tags", Value: bad, Allowed: allowed}
	}
	for key, value := range tags {
		if strings.ContainsAny(key, `<>%&?\/`) {
			return nil, &parameter.Error{Key: "tags", Value: key + "=" + value, Allowed: allowed}
		}
	}
	return tags, nil
}

func text(field func(*Parameters) *string) func(*Parameters, string) error {
	return parameter.Text(field)
}

func oneOf(field func(*Parameters) *string, allowed ...string) func(*Parameters, string) error {
	return parameter.OneOf(field, allowed...)
}

func number(field func(*Parameters) **int64, least int64) func(*Parameters, string) error {
	return parameter.Number(field, least)
}

// enabled reads true or false. False is the default and is not sent to Azure.
func enabled(field func(*Parameters) **bool) func(*Parameters, string) error {
	return func(p *Parameters, value string) error {
		if err := parameter.Boolean(field)(p, value); err != nil {
			return err
		}
		if on := field(p); !**on {
			*on = nil
		}
		return nil
	}
}

func id(field func(*Parameters) *azure.ID) func(*Parameters, string) error {
	return func(p *Parameters, value string) error {
		if value == "" {
			return nil
		}
		id, err := azure.ParseID(value)
		if err != nil {
			return fmt.Errorf("want the id of a resource: %w", err)
		}
		*field(p) = id
		return nil
	}
}

func readSectorSize(p *Parameters, value string) error {
	if value != "512" && value != "4096" {
		return fmt.Errorf("want 512 or 4096")
	}
	return number(func(p *Parameters) **int64 { return &p.LogicalSectorSize }, 512)(p, value)
}

func readWriteAccelerator(p *Parameters, value string) error {
	p.WriteAccelerator = strings.EqualFold(value, "true")
	return nil
}

// readDelay checks a delay in milliseconds.
func readDelay(p *Parameters, value string) error {
	var ignored *int64
	return number(func(*Parameters) **int64 { return &ignored }, 0)(p, value)
}

func readMaxShares(p *Parameters, value string) error {
	var n *int64
	if err := number(func(*Parameters) **int64 { return &n }, 1)(p, value); err != nil {
		return err
	}
	p.MaxShares = *n
	return nil
}
