package disk

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/azure"
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

// parameter is one row of the table: a key that users write, and what its value does.
type parameter struct {
	name string
	read func(p *Parameters, value string) error
	// alias is another name of the key, "" for none.
	alias string
	// mutable says that a VolumeAttributesClass can change it.
	mutable bool
}

// parameters returns the table of keys. Letter case in keys does not matter.
func parameters() []parameter {
	sku := oneOf(func(p *Parameters) *string { return &p.SKU }, skuNames()...)
	return []parameter{
		{"skuName", sku, "storageAccountType", true},
		{"diskIOPSReadWrite", number(func(p *Parameters) **int64 { return &p.IOPS }, 1), "", true},
		{"diskMBpsReadWrite", number(func(p *Parameters) **int64 { return &p.MBps }, 1), "", true},
		{"cachingMode", oneOf(func(p *Parameters) *string { return &p.CachingMode }, "None", "ReadOnly", "ReadWrite"), "", false},
		{"fsType", oneOfFold(func(p *Parameters) *string { return &p.FSType }, "ext2", "ext3", "ext4", "xfs", "btrfs", "ntfs"), "", false},
		{"location", text(func(p *Parameters) *string { return &p.Location }), "", false},
		{"resourceGroup", text(func(p *Parameters) *string { return &p.ResourceGroup }), "", false},
		{"subscriptionID", text(func(p *Parameters) *string { return &p.Subscription }), "", false},
		{"diskName", text(func(p *Parameters) *string { return &p.DiskName }), "", false},
		{"logicalSectorSize", readSectorSize, "", false},
		{"tags", text(func(p *Parameters) *string { return &p.tags }), "", false},
		{"tagValueDelimiter", text(func(p *Parameters) *string { return &p.delimiter }), "", false},
		{"diskEncryptionSetID", id(func(p *Parameters) *azure.ID { return &p.EncryptionSet }), "", false},
		{"diskEncryptionType", oneOf(func(p *Parameters) *string { return &p.EncryptionType }, "EncryptionAtRestWithCustomerKey",
			"EncryptionAtRestWithPlatformAndCustomerKeys", "EncryptionAtRestWithPlatformKey"), "", false},
		{"writeAcceleratorEnabled", readWriteAccelerator, "", false},
		{"maxShares", readMaxShares, "", false},
		{"networkAccessPolicy", oneOf(func(p *Parameters) *string { return &p.NetworkAccessPolicy }, "AllowAll", "DenyAll",
			"AllowPrivate"), "", false},
		{"publicNetworkAccess", oneOf(func(p *Parameters) *string { return &p.PublicNetworkAccess }, "Enabled", "Disabled"), "", false},
		{"diskAccessID", id(func(p *Parameters) *azure.ID { return &p.DiskAccess }), "", false},
		{"enableBursting", boolean(func(p *Parameters) **bool { return &p.Bursting }), "", false},
		{"enablePerformancePlus", boolean(func(p *Parameters) **bool { return &p.PerformancePlus }), "", false},
		{"csi.storage.k8s.io/pvc/name", text(func(p *Parameters) *string { return &p.PVCName }), "", false},
		{"csi.storage.k8s.io/pvc/namespace", text(func(p *Parameters) *string { return &p.PVCNamespace }), "", false},
		{"csi.storage.k8s.io/pv/name", text(func(p *Parameters) *string { return &p.PVName }), "", false},
		// Keys of the other driver that have no effect there or here. Classes that name them keep working.
		{"kind", ignored, "", false},
		{"enableAsyncAttach", ignored, "", false},
		{"zoned", ignored, "", false},
		{"attachDiskInitialDelay", ignored, "", false},
		{"useragent", ignored, "", false},
		{"perfProfile", readProfile, "", false},
	}
}

func skuNames() []string {
	return []string{"Standard_LRS", "StandardSSD_LRS", "StandardSSD_ZRS", "Premium_LRS", "Premium_ZRS", premiumV2, ultra}
}

const (
	premiumV2 = "PremiumV2_LRS"
	ultra     = "UltraSSD_LRS"
)

// ParameterError is a parameter that is not allowed.
type ParameterError struct{ Key, Value, Allowed string }

func (e *ParameterError) Error() string {
	return fmt.Sprintf("parameter %s: %q is not allowed: %s", e.Key, e.Value, e.Allowed)
}

// ReadParameters reads the parameters of a StorageClass and the mutable parameters of a VolumeAttributesClass, which
// come first where both name a key. The error is a [ParameterError].
func ReadParameters(class, mutable map[string]string) (Parameters, error) {
	var p Parameters
	if err := p.readAll(class, func(parameter) bool { return true }); err != nil {
		return p, err
	}
	if err := p.readAll(mutable, func(k parameter) bool { return k.mutable }); err != nil {
		return p, err
	}
	if err := p.readTags(); err != nil {
		return p, err
	}
	return p, p.check()
}

// ReadMutable reads the parameters of a VolumeAttributesClass.
func ReadMutable(mutable map[string]string) (Parameters, error) {
	var p Parameters
	return p, p.readAll(mutable, func(k parameter) bool { return k.mutable })
}

func (p *Parameters) readAll(values map[string]string, allowed func(parameter) bool) error {
	known := slices.DeleteFunc(parameters(), func(k parameter) bool { return !allowed(k) })
	read := map[string]string{} // the key as the user wrote it, by the key of the table
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if strings.HasPrefix(key, DeviceSetting) && allowed(parameter{name: DeviceSetting}) {
			if err := p.addSetting(key, values[key]); err != nil {
				return err
			}
			continue
		}
		i := slices.IndexFunc(known, func(k parameter) bool { return strings.EqualFold(k.name, key) || strings.EqualFold(k.alias, key) })
		if i < 0 {
			names := make([]string, len(known))
			for i, k := range known {
				names[i] = k.name
			}
			return &ParameterError{key, values[key], "the key is not known; known keys are " + strings.Join(names, ", ")}
		}
		if other, twice := read[known[i].name]; twice && values[other] != values[key] {
			return &ParameterError{key, values[key], fmt.Sprintf("%s is also set, to %q", other, values[other])}
		}
		read[known[i].name] = key
		if err := known[i].read(p, values[key]); err != nil {
			return &ParameterError{known[i].name, values[key], err.Error()}
		}
	}
	return nil
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
			return &ParameterError{c.key, c.value, c.allowed}
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

// readTags splits the tags, which are pairs with a separator of the user's choice.
func (p *Parameters) readTags() error {
	delimiter := p.delimiter
	if delimiter == "" {
		delimiter = ","
	}
	p.Tags = map[string]string{}
	for pair := range strings.SplitSeq(p.tags, delimiter) {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" || strings.ContainsAny(key, `<>%&?\/`) {
			return &ParameterError{"tags", pair, `want KEY=VALUE, with a key without < > % & ? \ /`}
		}
		p.Tags[key] = strings.TrimSpace(value)
	}
	return nil
}

func text(field func(*Parameters) *string) func(*Parameters, string) error {
	return func(p *Parameters, value string) error {
		*field(p) = value
		return nil
	}
}

func ignored(*Parameters, string) error { return nil }

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

func oneOf(field func(*Parameters) *string, allowed ...string) func(*Parameters, string) error {
	return func(p *Parameters, value string) error {
		if value != "" && !slices.Contains(allowed, value) {
			return fmt.Errorf("want %s", strings.Join(allowed, ", "))
		}
		*field(p) = value
		return nil
	}
}

func oneOfFold(field func(*Parameters) *string, allowed ...string) func(*Parameters, string) error {
	read := oneOf(field, allowed...)
	return func(p *Parameters, value string) error { return read(p, strings.ToLower(value)) }
}

func number(field func(*Parameters) **int64, least int64) func(*Parameters, string) error {
	return func(p *Parameters, value string) error {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < least {
			return fmt.Errorf("want a whole number from %d on", least)
		}
		*field(p) = &n
		return nil
	}
}

func boolean(field func(*Parameters) **bool) func(*Parameters, string) error {
	return func(p *Parameters, value string) error {
		b, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("want true or false")
		}
		if b {
			*field(p) = &b
		}
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

func readMaxShares(p *Parameters, value string) error {
	var n *int64
	if err := number(func(*Parameters) **int64 { return &n }, 1)(p, value); err != nil {
		return err
	}
	p.MaxShares = *n
	return nil
}
