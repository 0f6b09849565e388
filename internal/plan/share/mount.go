package share

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Mount is how a node mounts a share.
type Mount struct {
	Source string // //HOST/SHARE, or HOST:/ACCOUNT/SHARE
	Type   string // cifs or nfs
	// Options are the mount options. They have no secret.
	Options []string
}

// Defaults are the mount options that the driver's flags give or leave out.
type Defaults struct {
	// CloseTimeout adds closetimeo=0, and NoShareSocket nosharesock, to SMB mounts; NoReservedPort adds noresvport, and
	// AttributeCache actimeo=30, to NFS mounts.
	CloseTimeout, NoShareSocket, NoReservedPort, AttributeCache bool
}

// Mounting is what decides how a share is mounted.
type Mounting struct {
	Parameters
	Account, Share, Host string
	// Options are the mount options of the user: elements can have several with commas.
	Options  []string
	Group    string // file system group of the volume, "" for none
	ReadOnly bool
	Defaults Defaults
}

// Mount returns how a share is mounted. Options of the user come first: nothing overrides them.
func (m Mounting) Mount() Mount {
	options := split(m.Options)
	if m.ReadOnly {
		options = add(options, "ro")
	}
	folder := m.Expand(m.Folder)
	path := m.Share
	if folder != "" {
		path += "/" + folder
	}
	if m.NFS() {
		return Mount{Source: m.Host + ":/" + m.Account + "/" + path, Type: "nfs", Options: m.nfs(options)}
	}
	return Mount{Source: "//" + m.Host + "/" + path, Type: "cifs", Options: m.smb(options)}
}

// usualMode is the mode of files and directories of SMB volumes.
const usualMode = "0777"

// smb adds what the user left open.
func (m Mounting) smb(options []string) []string {
	options = add(options, "file_mode="+cmp.Or(m.FileMode, usualMode))
	options = add(options, "dir_mode="+cmp.Or(m.DirMode, usualMode))
	if m.UID != "" {
		options = add(options, "uid="+m.UID)
	}
	switch {
	case m.GID != "":
		options = add(options, "gid="+m.GID)
	case m.Group != "" && !has(options, "gid"):
		options = append(options, "gid="+m.Group)
		options = add(options, "forcegid")
	}
	if !has(options, "acregmax") && !has(options, "acdirmax") {
		options = add(options, "actimeo=30")
	}
	options = add(options, "mfsymlinks")
	if m.Defaults.NoShareSocket {
		options = add(options, "nosharesock")
	}
	if m.Defaults.CloseTimeout {
		options = add(options, "sloppy")
		options = add(options, "closetimeo=0")
	}
	if m.Identity() {
		for _, o := range []string{"sec=krb5", "cruid=0", "upcall_target=mount"} {
			options = add(options, o)
		}
	}
	return options
}

func (m Mounting) nfs(options []string) []string {
	if !has(options, "nfsvers") {
		options = add(options, "vers=4")
		options = add(options, "minorversion=1")
	}
	options = add(options, "sec=sys")
	if m.Defaults.NoReservedPort && !has(options, "resvport") {
		options = add(options, "noresvport")
	}
	if m.Defaults.AttributeCache && !has(options, "acregmax") && !has(options, "acdirmax") {
		options = add(options, "actimeo=30")
	}
	return options
}

// Difference is an option of SMB in which two mounts of a share differ.
type Difference struct{ Name, Have, Want string }

// Differs returns the first of the named options in which another mount differs from this one, nil if none differs. Here
// options are those of the other mount, as the kernel shows them. The named options are the owner, the group or the modes of
// files. Names of users and groups are not compared: only the mount program knows their numbers.
func (m Mount) Differs(options []string, names ...string) *Difference {
	for _, name := range names {
		base := 8
		if name == "uid" || name == "gid" {
			base = 10
		}
		want, err := strconv.ParseUint(valueOf(m.Options, name), base, 32)
		have, unknown := strconv.ParseUint(valueOf(options, name), base, 32)
		if err == nil && unknown == nil && have != want {
			return &Difference{name, valueOf(options, name), valueOf(m.Options, name)}
		}
	}
	return nil
}

// Open reports whether users that are neither the owner nor in the group have the rights of the group.
func (m Mount) Open() bool {
	for _, name := range []string{"file_mode", "dir_mode"} {
		mode, err := strconv.ParseUint(valueOf(m.Options, name), 8, 32)
		if group, others := mode>>3&0o7, mode&0o7; err != nil || group&^others != 0 {
			return false
		}
	}
	return true
}

func valueOf(options []string, name string) string {
	for _, o := range options {
		if n, value, ok := strings.Cut(o, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// split splits elements with several options. Of an option that is named twice the last counts.
func split(elements []string) []string {
	var options []string
	for _, element := range elements {
		for option := range strings.SplitSeq(element, ",") {
			if option = strings.TrimSpace(option); option == "" {
				continue
			}
			name, _, _ := strings.Cut(option, "=")
			options = slices.DeleteFunc(options, func(o string) bool { return nameOf(o) == name })
			options = append(options, option)
		}
	}
	return options
}

func nameOf(option string) string {
	name, _, _ := strings.Cut(option, "=")
	return name
}

func has(options []string, name string) bool {
	return slices.ContainsFunc(options, func(o string) bool { return nameOf(o) == name })
}

// add adds an option, unless one of its name is there.
func add(options []string, option string) []string {
	if has(options, nameOf(option)) {
		return options
	}
	return append(options, option)
}

// UsualPermissions is the mode of the root of NFS volumes, unless a flag of the driver or a parameter says another one.
const UsualPermissions = "0777"

// Permissions returns the mode of the root of a volume. The mode 0 leaves the root as it is. usual is the mode of volumes
// that name none.
func (p *Parameters) Permissions(usual uint32) uint32 {
	if p.MountPermissions == "" {
		return usual
	}
	mode, err := strconv.ParseUint(p.MountPermissions, 8, 32)
	if err != nil { // it was checked when it was read
		return usual
	}
	return uint32(mode)
}
