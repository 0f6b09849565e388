package disk_test

import (
	"strings"
	"testing"

	"kaz/internal/plan/disk"
)

// TestFileSystems checks which file systems and mount options a disk can have.
func TestFileSystems(t *testing.T) {
	for _, c := range []struct {
		what, fsType, options string
		want                  string // a part of the error, "" for none
	}{
		{"the default", "", "", ""},
		{"upper case", "XFS", "noatime,nouuid", ""},
		{"options of administrators", "ext4", "suid,dev,data=ordered,commit=30", ""},
		{"a path as program", "../../tmp/x", "", "fsType"},
		{"options in the type", "ext4 -F", "", "fsType"},
		{"another file system", "overlay", "", "want ext2"},
		{"a bind mount", "ext4", "ro,BIND", "mountOptions"},
		{"another mount", "ext4", "remount", "mountOptions"},
		{"a newline", "ext4", "ro\nsuid", "mountOptions"},
		{"long options", "ext4", strings.Repeat("ro,", 2000), "6000 bytes"},
	} {
		err := disk.CheckFileSystem(c.fsType, []string{c.options})
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || len(err.Error()) > 500) {
			t.Errorf("%s: %v, want %q", c.what, err, c.want)
		}
	}
}

// FuzzProfile reads any setting of a device. What is allowed stays below the device's directory.
func FuzzProfile(f *testing.F) {
	f.Add("queue/read_ahead_kb", "16")
	f.Add("../x", "1")
	f.Add("queue/../../x", "a\nb")
	f.Fuzz(func(t *testing.T, file, value string) {
		p, err := disk.ReadProfile(map[string]string{"perfProfile": "advanced", "device-setting/" + file: value})
		if err != nil {
			return
		}
		for name, text := range p.DeviceSettings {
			if strings.Contains(name, "..") || !strings.HasPrefix(name, "queue/") && !strings.HasPrefix(name, "device/") ||
				strings.ContainsAny(text, "\n\x00/") || len(text) > 64 {
				t.Errorf("%q: %q", name, text)
			}
		}
	})
}
