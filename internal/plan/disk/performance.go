package disk

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/plan/parameter"
)

// DeviceSetting begins the keys of settings that a user chooses for the device of a disk. The rest of the key is a path
// below the device's directory in /sys/block, the value is what is written.
const DeviceSetting = "device-setting/"

// The performance profiles.
const (
	ProfileNone     = "none"     // the kernel's own settings
	ProfileBasic    = "basic"    // settings computed from the disk and the machine
	ProfileAdvanced = "advanced" // settings that the user names
)

// readProfile reads the value of perfProfile.
func readProfile(p *Parameters, value string) error {
	return parameter.OneOfFold(func(p *Parameters) *string { return &p.Profile }, ProfileNone, ProfileBasic, ProfileAdvanced)(p, value)
}

// The settings of a device that a user can choose: those of its queue, and those of its SCSI device that do not remove it. Other files
// there lead to other devices, or delete the disk.
var (
	settingFile = regexp.MustCompile(`^(queue/(iosched/)?[a-z0-9_]+|` +
		`device/(queue_depth|queue_type|queue_ramp_up_period|timeout|eh_timeout))$`)
	settingValue = regexp.MustCompile(`^[A-Za-z0-9 _.:+-]{1,64}$`)
)

// addSetting adds a setting of the device.
func (p *Parameters) addSetting(key, value string) error {
	file := strings.TrimPrefix(key, DeviceSetting)
	if !settingFile.MatchString(file) {
		return &parameter.Error{Key: key, Value: value, Allowed: "want " + DeviceSetting +
			"PATH, with a file of the device's queue such as " + DeviceSetting +
			"queue/read_ahead_kb, or device/queue_depth, queue_type, queue_ramp_up_period, timeout or eh_timeout"}
	}
	if !settingValue.MatchString(value) {
		return &parameter.Error{Key: key, Value: value, Allowed: "want 1 to 64 letters, digits, blanks and _ . : + -"}
	}
	if p.DeviceSettings == nil {
		p.DeviceSettings = map[string]string{}
	}
	p.DeviceSettings[file] = value
	return nil
}

// ReadProfile reads the profile of a volume from its volume context. Other keys of the context do not matter.
func ReadProfile(volumeContext map[string]string) (Parameters, error) {
	var p Parameters
	for _, key := range slices.Sorted(maps.Keys(volumeContext)) {
		value, err := volumeContext[key], error(nil)
		switch name := strings.ToLower(key); {
		case strings.HasPrefix(key, DeviceSetting):
			err = p.addSetting(key, value)
		case name == "perfprofile":
			if readProfile(&p, value) != nil {
				err = &parameter.Error{Key: key, Value: value, Allowed: "want none, basic, advanced"}
			}
		case name == "skuname", name == "storageaccounttype":
			p.SKU = value
		case name == "diskiopsreadwrite":
			p.IOPS = wholeNumber(value)
		case name == "diskmbpsreadwrite":
			p.MBps = wholeNumber(value)
		}
		if err != nil {
			return p, err
		}
	}
	return p, p.checkProfile()
}

func wholeNumber(text string) *int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// checkProfile returns an error if the profile lacks its settings.
func (p *Parameters) checkProfile() error {
	if p.Profile == ProfileAdvanced && len(p.DeviceSettings) == 0 {
		return &parameter.Error{Key: "perfProfile", Value: p.Profile, Allowed: "it needs at least one key " + DeviceSetting + "PATH"}
	}
	return nil
}

// Speed is how fast a disk, or all disks of a machine together, can be. Zero is not known.
type Speed struct{ IOPS, MBps int64 }

// tier is a size of disk with its speed.
type tier struct {
	gib   int64
	speed Speed
}

// tiersOf returns the tiers of a SKU by size, nil if its disks have none. Source: "Scalability and performance targets
// for VM disks" in Microsoft's documentation.
func tiersOf(sku string) []tier {
	switch name, _, _ := strings.Cut(strings.ToLower(sku), "_"); name {
	case "premium":
		return []tier{
			{32, Speed{120, 25}}, {64, Speed{240, 50}}, {128, Speed{500, 100}}, {256, Speed{1100, 125}}, {512, Speed{2300, 150}},
			{1024, Speed{5000, 200}}, {4096, Speed{7500, 250}}, {8192, Speed{16000, 500}}, {16384, Speed{18000, 750}},
			{32767, Speed{20000, 900}},
		}
	case "standardssd":
		return []tier{
			{4096, Speed{500, 100}}, {8192, Speed{2000, 400}}, {16384, Speed{4000, 600}}, {32767, Speed{6000, 750}},
		}
	}
	return nil
}

// BasicSettings returns the settings of profile basic for a disk of gib GiB, by their path below the device's directory.
// It returns none for SKUs without tiers. A speed of the machine that is not known does not limit the disk.
//
// The queue must hold what is in flight when the disk is as fast as it can be: its rate times its latency.
func BasicSettings(p Parameters, gib int64, machine Speed) map[string]string {
	const headRoom, mostKB = 0.25, 512
	tiers := tiersOf(p.SKU)
	wanted := Speed{value(p.IOPS), value(p.MBps)}
	i := slices.IndexFunc(tiers, func(t tier) bool {
		return t.gib >= gib && t.speed.IOPS >= wanted.IOPS && t.speed.MBps >= wanted.MBps
	})
	if i < 0 {
		return nil
	}
	disk := tiers[i]
	iops := float64(lesser(disk.speed.IOPS, machine.IOPS))
	rate := float64(lesser(disk.speed.MBps, machine.MBps)) * 1000 // KB each second
	sequential, random := latencies(disk.gib)
	size := math.Ceil(min(mostKB, rate/((1-headRoom)*iops)))
	inSequence := math.Ceil(rate * sequential / size)
	atRandom := math.Ceil(iops * random)
	depth := strconv.Itoa(int(math.Ceil(max(headRoom*atRandom+inSequence, atRandom))))
	return map[string]string{
		"queue/max_sectors_kb": strconv.Itoa(int(size)), "queue/scheduler": "mq-deadline", "queue/nr_requests": depth,
		"queue/read_ahead_kb": "8", "device/queue_depth": depth,
	}
}

// latencies returns the seconds that a request takes, for requests in sequence and at random. They grow with the size.
func latencies(gib int64) (sequential, random float64) {
	switch {
	case gib <= 4096:
		return 0.0033, 0.0022
	case gib <= 8192:
		return 0.0041, 0.0028
	case gib <= 16384:
		return 0.0046, 0.0034
	}
	return 0.0052, 0.0040
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// lesser returns the lesser of two numbers that are known.
func lesser(a, b int64) int64 { return min(a, cmp.Or(b, a)) }
