package boot

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/cluster/definition"
)

// ignitionVersion is the version of Ignition's specification. Flatcar Container Linux reads it since release 3185.
const ignitionVersion = "3.3.0"

// These types are the parts of Ignition's specification that kaz writes.
type (
	ignitionConfig struct {
		Ignition ignitionMeta    `json:"ignition"`
		Passwd   ignitionPasswd  `json:"passwd"`
		Storage  ignitionStorage `json:"storage"`
		Systemd  ignitionSystemd `json:"systemd"`
	}
	ignitionMeta struct {
		Version string `json:"version"`
	}
	ignitionPasswd struct {
		Users []ignitionUser `json:"users"`
	}
	ignitionUser struct {
		Name   string   `json:"name"`
		Groups []string `json:"groups"`
		Keys   []string `json:"sshAuthorizedKeys"`
	}
	ignitionStorage struct {
		Filesystems []ignitionFilesystem `json:"filesystems,omitempty"`
		Files       []ignitionFile       `json:"files"`
	}
	ignitionFilesystem struct {
		Device string `json:"device"`
		Format string `json:"format"`
		Label  string `json:"label"`
		Wipe   bool   `json:"wipeFilesystem"`
	}
	ignitionFile struct {
		Path      string           `json:"path"`
		Mode      int              `json:"mode"`
		Overwrite bool             `json:"overwrite"`
		Contents  ignitionContents `json:"contents"`
	}
	ignitionContents struct {
		Source string `json:"source"`
	}
	ignitionSystemd struct {
		Units []ignitionUnit `json:"units"`
	}
	ignitionUnit struct {
		Name     string           `json:"name"`
		Enabled  *bool            `json:"enabled,omitempty"`
		Mask     bool             `json:"mask,omitempty"`
		Contents string           `json:"contents,omitempty"`
		Dropins  []ignitionDropin `json:"dropins,omitempty"`
	}
	ignitionDropin struct {
		Name     string `json:"name"`
		Contents string `json:"contents"`
	}
)

// etcdDevice is the disk of etcd. Its links are there when Ignition runs.
const etcdDevice = "/dev/disk/azure/scsi1/lun0"

// containerdConfig lets containerd read its configuration below /etc instead of that of the image.
const containerdConfig = "[Service]\nExecStart=\nExecStart=/usr/bin/containerd --config /etc/containerd/config.toml\n"

// ignition is the Ignition config with a content, for a pool's machines, or for the control plane's if pool is nil.
func (b builder) ignition(pool *definition.NodePool, c content) ([]byte, error) {
	access := b.spec.Access
	config := ignitionConfig{Ignition: ignitionMeta{ignitionVersion}}
	config.Passwd.Users = []ignitionUser{{Name: access.AdminUser, Groups: []string{"sudo"}, Keys: access.SSHPublicKeys}}
	if pool == nil {
		// A disk that has this file system keeps it. One with another is refused.
		config.Storage.Filesystems = []ignitionFilesystem{{Device: etcdDevice, Format: "ext4", Label: "etcd_disk"}}
	}
	files := append(slices.Clone(c.files), file{unitDir + "containerd.service.d/10-kaz.conf", "0644", containerdConfig},
		file{"/etc/sudoers.d/90-kaz", "0440", access.AdminUser + " ALL=(ALL) NOPASSWD:ALL\n"})
	units := unitSet{}
	for i, f := range files {
		if slices.ContainsFunc(files[i+1:], func(later file) bool { return later.Path == f.Path }) {
			continue // an Extension has another one: Ignition takes each path once
		}
		if units.add(f) {
			continue
		}
		mode, err := strconv.ParseInt(f.Permissions, 8, 32)
		if err != nil {
			return nil, err
		}
		config.Storage.Files = append(config.Storage.Files, ignitionFile{Path: f.Path, Mode: int(mode), Overwrite: true,
			Contents: ignitionContents{dataURL(f.Content)}})
	}
	for _, name := range c.units {
		units.get(name).Enabled = new(true)
	}
	// Machines are replaced by those of another image, and do not change by themselves.
	for _, name := range []string{"update-engine.service", "locksmithd.service"} {
		units.get(name).Mask = true
	}
	config.Systemd.Units = units.sorted()
	text, err := json.MarshalIndent(config, "", "  ")
	return append(text, '\n'), err
}

// dataURL is a URL of a text, which stays readable.
func dataURL(text string) string {
	return "data:," + strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// unitSet has units of systemd by name.
type unitSet map[string]*ignitionUnit

func (s unitSet) get(name string) *ignitionUnit {
	if s[name] == nil {
		s[name] = &ignitionUnit{Name: name}
	}
	return s[name]
}

// add adds a file as a unit, or as a drop-in of one. It reports false for any other file.
func (s unitSet) add(f file) bool {
	name, below := strings.CutPrefix(f.Path, unitDir)
	if !below || f.Content == "" || f.Permissions != "0644" { // the mode of units
		return false
	}
	parent, dropin, isDropin := strings.Cut(name, "/")
	switch unit, ends := strings.CutSuffix(parent, ".d"); {
	case !isDropin && isUnit(name):
		s.get(name).Contents = f.Content
	case isDropin && ends && isUnit(unit) && strings.HasSuffix(dropin, ".conf") && !strings.Contains(dropin, "/"):
		s.get(unit).Dropins = append(s.get(unit).Dropins, ignitionDropin{dropin, f.Content})
	default:
		return false
	}
	return true
}

// isUnit reports whether a file name is one of a unit that Ignition takes.
func isUnit(name string) bool {
	for _, kind := range []string{".service", ".timer", ".mount", ".socket", ".path", ".target"} {
		if strings.HasSuffix(name, kind) && len(name) > len(kind) {
			return true
		}
	}
	return false
}

// sorted are the units by name.
func (s unitSet) sorted() []ignitionUnit {
	var all []ignitionUnit
	for _, u := range s {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b ignitionUnit) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// isIgnition reports whether a boot file is an Ignition config.
func isIgnition(file []byte) bool { return strings.HasPrefix(string(file), "{") }

// wrapped is a small config with a compressed one in it: Ignition does not decompress custom data itself.
func wrapped(zipped []byte) ([]byte, error) {
	type reference struct {
		Source      string `json:"source"`
		Compression string `json:"compression"`
	}
	type replacing struct {
		Replace reference `json:"replace"`
	}
	type meta struct {
		Version string    `json:"version"`
		Config  replacing `json:"config"`
	}
	return json.Marshal(map[string]meta{"ignition": {ignitionVersion, replacing{reference{
		"data:;base64," + base64.StdEncoding.EncodeToString(zipped), "gzip"}}}})
}

// FileName is the name of a boot file among generated files, for machines of a name.
func FileName(machines string, file []byte) string {
	if isIgnition(file) {
		return "ignition/" + machines + ".json"
	}
	return "cloud-init/" + machines + ".yaml"
}
