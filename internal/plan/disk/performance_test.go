package disk_test

import (
	"maps"
	"strings"
	"testing"

	"kaz/internal/plan/disk"
)

// TestProfiles checks which profiles and settings of a device are allowed (rows 36 and 37).
func TestProfiles(t *testing.T) {
	for _, c := range []struct {
		name, keys string // KEY=VALUE, separated by blanks
		want       string // a part of the error, "" for none
	}{
		{"36: settings", "perfProfile=Advanced device-setting/queue/read_ahead_kb=16", ""},
		{"36: a path outside", "perfProfile=advanced device-setting/../../x=1", "device-setting/../../x"},
		{"36: a path that leaves later", "perfProfile=advanced device-setting/queue/../../../x=1", "want device-setting/PATH"},
		{"36: an absolute path", "perfProfile=advanced device-setting//etc/passwd=1", "want device-setting/PATH"},
		{"36: no path", "perfProfile=advanced device-setting/=1", "want device-setting/PATH"},
		{"36: another device", "perfProfile=advanced device-setting/subsystem/sda/queue/nr_requests=1", "want device-setting/PATH"},
		{"36: a file that deletes the disk", "perfProfile=advanced device-setting/device/delete=1", "want device-setting/PATH"},
		{"36: a long value", "perfProfile=advanced device-setting/queue/scheduler=" + strings.Repeat("a", 65), "want 1 to 64"},
		{"36: a value with a newline", "perfProfile=advanced device-setting/queue/scheduler=a\x00b", "want 1 to 64"},
		{"36: the queue of SCSI", "perfProfile=advanced device-setting/device/queue_depth=16 device-setting/queue/iosched/fifo_batch=1", ""},
		{"36: no settings", "perfProfile=advanced", "needs at least one key device-setting/PATH"},
		{"37: another profile", "perfProfile=turbo", `perfProfile: "turbo"`},
		{"37: basic", "perfProfile=basic", ""},
		{"37: none", "perfProfile=NONE", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys := map[string]string{}
			for pair := range strings.FieldsSeq(c.keys) {
				key, value, _ := strings.Cut(pair, "=")
				keys[key] = value
			}
			class, err := disk.ReadParameters(keys, nil)
			volume, err2 := disk.ReadProfile(keys)
			for _, err := range []error{err, err2} {
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
			if !maps.Equal(class.DeviceSettings, volume.DeviceSettings) || class.Profile != volume.Profile {
				t.Errorf("the class has %v %v, the volume %v %v", class.Profile, class.DeviceSettings, volume.Profile, volume.DeviceSettings)
			}
		})
	}
	if _, err := disk.ReadMutable(map[string]string{"device-setting/queue/read_ahead_kb": "16"}); err == nil {
		t.Error("a VolumeAttributesClass can have settings of the device, which nothing would write again")
	}
}

// TestBasicSettings checks the settings of profile basic against values that were computed by hand.
func TestBasicSettings(t *testing.T) {
	for _, c := range []struct {
		name    string
		sku     string
		gib     int64
		machine disk.Speed
		size    string // of a request
		depth   string
	}{
		// P10: 500 IOPS, 100 MB/s. min(512, 100000/375) = 266.7; ceil(330/267) = 2, ceil(1.1) = 2, ceil(0.5+2) = 3.
		{"P10", "Premium_LRS", 100, disk.Speed{}, "267", "3"},
		// P30: 5000 IOPS, 200 MB/s. 200000/3750 = 53.3; ceil(660/54) = 13, 11, ceil(2.75+13) = 16.
		{"P30", "Premium_ZRS", 1024, disk.Speed{IOPS: 80000, MBps: 2000}, "54", "16"},
		// The machine limits P30 to 3750 IOPS and 85 MB/s. 85000/2812.5 = 30.2; ceil(280.5/31) = 10, 9, ceil(2.25+10) = 13.
		{"P30 on a small machine", "Premium_LRS", 1024, disk.Speed{IOPS: 3750, MBps: 85}, "31", "13"},
		// E60: 2000 IOPS, 400 MB/s. 400000/1500 = 266.7; ceil(1640/267) = 7, ceil(5.6) = 6, ceil(1.5+7) = 9.
		{"E60", "StandardSSD_LRS", 5000, disk.Speed{}, "267", "9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := map[string]string{
				"queue/max_sectors_kb": c.size, "queue/scheduler": "mq-deadline", "queue/nr_requests": c.depth,
				"queue/read_ahead_kb": "8", "device/queue_depth": c.depth,
			}
			if have := disk.BasicSettings(disk.Parameters{SKU: c.sku}, c.gib, c.machine); !maps.Equal(have, want) {
				t.Errorf("%v, want %v", have, want)
			}
		})
	}
	for _, sku := range []string{"PremiumV2_LRS", "UltraSSD_LRS", "Standard_LRS", ""} {
		if have := disk.BasicSettings(disk.Parameters{SKU: sku}, 100, disk.Speed{}); have != nil {
			t.Errorf("%s has settings without tiers: %v", sku, have)
		}
	}
}
