package windows

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

const (
	guid1 = `\\?\Volume{11111111-1111-1111-1111-111111111111}\`
	guid2 = `\\?\Volume{22222222-2222-2222-2222-222222222222}\`
)

// TestParseDisks checks what is read of PowerShell's output, and what is refused.
func TestParseDisks(t *testing.T) {
	text, err := os.ReadFile("testdata/disks.json")
	if err != nil {
		t.Fatal(err)
	}
	have, err := parseDisks(append([]byte("\ufeff"), text...))
	if err != nil {
		t.Fatal(err)
	}
	want := []Disk{
		{
			Number: 0, Location: "PCI Slot 0 : Adapter 0 : Channel 0 : Device 0", BusType: "ATA", Style: "MBR", Size: 137438953472, System: true,
			Partitions: []Partition{{Number: 1, Type: "IFS", Offset: mib, Size: 137436856320, Volume: guid1, FileSystem: "NTFS", Label: "Windows"}},
		},
		{
			Number: 2, Location: "Integrated : Adapter 3 : Port 0 : Target 0 : LUN 0", BusType: "SAS", Style: "GPT", Size: 16 * gib, Offline: true,
			Partitions: []Partition{
				{Number: 1, Type: "Reserved", Offset: 17408, Size: 16759808},
				{Number: 2, Type: "Basic", Offset: 16 * mib, Size: 17162043392, Volume: guid2, FileSystem: "NTFS"},
			},
		},
		{Number: 3, Location: "Integrated : Adapter 3 : Port 0 : Target 0 : LUN 12", BusType: "SAS", Style: "RAW", Size: 16 * gib,
			ReadOnly: true},
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Error(diff)
	}
	disk := `"Number":1,"Size":1,"System":false,"Offline":false,"ReadOnly":false`
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "EOF"},
		{"no JSON", "Get-Disk : Access is denied.", "Access is denied"},
		{"no list", `{"Number":1}`, "cannot unmarshal"},
		{"two values", "[] []", "want one JSON value"},
		{"another field", `[{` + disk + `,"Partitions":[],"Path":""}]`, "unknown field"},
		{"no number", `[{"Size":1,"System":false,"Offline":false,"ReadOnly":false,"Partitions":[]}]`, "want Number"},
		{"no partitions", `[{` + disk + `,"Partitions":null}]`, "Partitions"},
		{"a number that is none", `[{"Number":-1,"Size":1,"System":false,"Offline":false,"ReadOnly":false,"Partitions":[]}]`, "number -1"},
		{"one number twice", `[{` + disk + `,"Partitions":[]},{` + disk + `,"Partitions":[]}]`, "number 1 is there twice"},
		{"a partition without size", `[{` + disk + `,"Partitions":[{"Number":1,"Offset":0}]}]`, "want Number, Offset and Size"},
		{"an end beyond all", `[{` + disk + `,"Partitions":[{"Number":1,"Offset":9223372036854775807,"Size":1}]}]`, "want 0 or more"},
		{"no volume", `[{` + disk + `,"Partitions":[{"Number":1,"Offset":0,"Size":1,"Volume":"C:\\"}]}]`, `want \\?\Volume{GUID}\`},
	} {
		if _, err := parseDisks([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestParseSizes checks what is read of the sizes of a partition.
func TestParseSizes(t *testing.T) {
	size, most, err := parseSizes([]byte(`{"Size":1073741824,"Most":2147483648}` + "\r\n"))
	if err != nil || size != gib || most != 2*gib {
		t.Error(size, most, err)
	}
	for _, text := range []string{"", "null", "{}", `{"Size":1}`, `{"Size":-1,"Most":1}`, `{"Size":1,"Most":2}x`, `{"Size":1.5,"Most":2}`} {
		if _, _, err := parseSizes([]byte(text)); err == nil {
			t.Errorf("%q has sizes", text)
		}
	}
}

// FuzzParseDisks checks that any output is read as disks of which the next step can be told, or refused.
func FuzzParseDisks(f *testing.F) {
	text, err := os.ReadFile("testdata/disks.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	for _, seed := range []string{"[]", "null", "", "\ufeff[]", `{"value":[],"Count":0}`, `[{"Number":1}]`, "[1", "Get-Disk : error"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		disks, err := parseDisks(output)
		if err != nil {
			return
		}
		for _, d := range disks {
			step, err := d.next()
			if err == nil && step.script == "" && !volumePath.MatchString(step.partition.Volume) {
				t.Errorf("%+v is ready without a volume", d)
			}
			if (step.script == format || step.script == initialize) && len(step.blank) == 0 {
				t.Errorf("%+v: nothing is looked at before %s", d, step.script)
			}
			if d.Partitions == nil {
				d.Partitions = []Partition{}
			}
			printed, err := json.Marshal([]Disk{d})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parseDisks(printed); err != nil {
				t.Errorf("%+v cannot be read again: %v", d, err)
			}
		}
	})
}

// TestScripts checks that scripts are one argument of a command line, and that each value that they name is one that is given.
func TestScripts(t *testing.T) {
	variables := []string{diskVariable, partitionVariable, sizeVariable, volumeVariable}
	named := regexp.MustCompile(`(?i)\$env:(\w+)`)
	for _, s := range []script{list, rescan, enable, initialize, divide, format, sizes, resize, flush} {
		if strings.Contains(string(s), `"`) || !strings.HasPrefix(string(s), begin) {
			t.Errorf("%s: has a double quote, or does not end at the first error", s)
		}
		for _, match := range named.FindAllStringSubmatch(string(s), -1) {
			if !slices.Contains(variables, match[1]) {
				t.Errorf("%s: nothing gives %s", s, match[1])
			}
		}
	}
}

// scsi is a data disk at a LUN.
func scsi(number int, lun string) Disk {
	return Disk{
		Number: number, Location: "Integrated : Adapter 3 : Port 0 : Target 0 : LUN " + lun, BusType: "SAS", Style: "RAW", Size: 4 * gib,
		Partitions: []Partition{},
	}
}

// TestChoose checks which disk is that of a LUN.
func TestChoose(t *testing.T) {
	with := func(d Disk, change func(*Disk)) Disk { change(&d); return d }
	system := with(scsi(0, "0"), func(d *Disk) { d.System, d.Location = true, "Integrated : Adapter 0 : Port 0 : Target 0 : LUN 0" })
	raw := with(scsi(1, "1"), func(d *Disk) { d.Location = "Integrated : Adapter 0 : Port 0 : Target 0 : LUN 1" })
	alone := with(scsi(0, "1"), func(d *Disk) { d.System, d.Location = true, "LUN 1" })
	temporary := with(scsi(1, "1"), func(d *Disk) { d.Partitions = []Partition{{Number: 1, Label: "Temporary Storage"}} })
	for _, c := range []struct {
		name  string
		disks []Disk
		want  int // number of the disk, -1 for none
		wrong string
	}{
		{"none", nil, -1, ""},
		{"another LUN", []Disk{scsi(2, "0"), scsi(3, "11"), scsi(4, "10")}, -1, ""},
		{"beside others", []Disk{scsi(2, "0"), scsi(3, "1"), scsi(4, "11")}, 3, ""},
		{"bus SCSI", []Disk{with(scsi(3, "1"), func(d *Disk) { d.BusType = "SCSI" })}, 3, ""},
		{"the operating system's and the temporary disk", []Disk{alone, temporary}, -1, ""},
		{"a temporary disk without label", []Disk{system, raw}, -1, ""},
		{"beside those", []Disk{system, raw, temporary, scsi(2, "1")}, 2, ""},
		{"NVMe", []Disk{with(scsi(2, "1"), func(d *Disk) { d.BusType = "NVMe" })}, -1, ""},
		{"IDE", []Disk{with(scsi(2, "1"), func(d *Disk) { d.Location = "PCI Slot 1 : Adapter 0 : Channel 1 : Device 1" })}, -1, ""},
		{"a file", []Disk{with(scsi(2, "1"), func(d *Disk) { d.Location = `C:\LUN 1\a : LUN 1.vhdx` })}, -1, ""},
		{"two", []Disk{scsi(2, "1"), scsi(5, "1")}, -1, "the disks with the numbers 2, 5"},
	} {
		found, err := choose(c.disks, 1)
		have := -1
		if found != nil {
			have = found.Number
		}
		if have != c.want || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %d, %v; want %d and %q", c.name, have, err, c.want, c.wrong)
		}
	}
}

// TestNext checks the steps that make a volume of a disk, and the disks that are left as they are.
func TestNext(t *testing.T) {
	reserved := Partition{Number: 1, Type: "Reserved", Offset: 17408, Size: 16759808}
	basic := Partition{Number: 2, Type: "Basic", Offset: 16 * mib, Size: gib, Volume: guid1}
	of := func(p Partition, fileSystem string) Partition { p.FileSystem = fileSystem; return p }
	for _, c := range []struct {
		name  string
		disk  Disk
		want  script
		blank []area
		wrong string
	}{
		{"offline", Disk{Style: "RAW", Offline: true}, enable, nil, ""},
		{"read-only", Disk{Style: "GPT", ReadOnly: true}, enable, nil, ""},
		{"raw", Disk{Style: "RAW", Size: 4*gib + 512}, initialize, []area{{0, mib}, {4*gib - mib, mib}}, ""},
		{"raw and tiny", Disk{Style: "RAW", Size: mib + 512}, initialize, []area{{0, mib}}, ""},
		{"raw with partitions", Disk{Style: "RAW", Partitions: []Partition{basic}}, "", nil, "1 partitions: want RAW without"},
		{"another style", Disk{Style: "Unknown"}, "", nil, `"Unknown"`},
		{"initialized", Disk{Style: "GPT", Partitions: []Partition{reserved}}, divide, nil, ""},
		{"divided", Disk{Style: "GPT", Partitions: []Partition{reserved, basic}}, format, []area{{16 * mib, mib}, {15*mib + gib, mib}}, ""},
		{"divided, old name", Disk{Style: "GPT", Partitions: []Partition{of(basic, "RAW")}}, format,
			[]area{{16 * mib, mib}, {15*mib + gib, mib}}, ""},
		{"ready", Disk{Style: "GPT", Partitions: []Partition{reserved, of(basic, "NTFS")}}, "", nil, ""},
		{"ready, MBR", Disk{Style: "MBR", Partitions: []Partition{of(basic, "NTFS")}}, "", nil, ""},
		{"MBR without partitions", Disk{Style: "MBR"}, "", nil, "0 partitions: want one"},
		{"two partitions", Disk{Style: "GPT", Partitions: []Partition{basic, of(basic, "NTFS")}}, "", nil, "2 partitions: want one"},
		{"another file system", Disk{Style: "GPT", Partitions: []Partition{of(basic, "ReFS")}}, "", nil, "ReFS: want NTFS"},
		{"Linux", Disk{Style: "GPT", Partitions: []Partition{{Number: 1, Type: "Unknown", Size: gib}}}, "", nil, `type "Unknown"`},
	} {
		have, err := c.disk.next()
		if have.script != c.want || !slices.Equal(have.blank, c.blank) || (err != nil) != (c.wrong != "") ||
			err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q after %v, %v; want %q after %v, %q", c.name, have.script, have.blank, err, c.want, c.blank, c.wrong)
		}
		if err == nil && c.want == "" && have.partition.Volume != guid1 {
			t.Errorf("%s: volume %q", c.name, have.partition.Volume)
		}
	}
}

// TestGrowsTo checks that a partition grows by what a disk grew, and not by what Windows leaves at the end of a disk.
func TestGrowsTo(t *testing.T) {
	for _, c := range []struct {
		size, most int64
		want       bool
	}{{gib, gib, false}, {gib, gib + 17*mib, false}, {gib, 2 * gib, true}, {2 * gib, gib, false}} {
		if growsTo(c.size, c.most) != c.want {
			t.Errorf("from %d to %d: %v", c.size, c.most, !c.want)
		}
	}
}
