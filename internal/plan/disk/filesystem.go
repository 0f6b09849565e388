package disk

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/plan/parameter"
)

// ntfs is the file system of Windows.
const ntfs = "ntfs"

// fileSystems are the file systems of Linux.
func fileSystems() []string { return []string{"ext2", "ext3", "ext4", "xfs", "btrfs"} }

// mostOptions is how many bytes all mount options have; the kernel takes one page.
const mostOptions = 4000

// CheckFileSystem returns why Linux cannot mount a disk with a file system and mount options, nil if it can. A pod can name the file
// system of a volume of the in-tree driver, and the name becomes that of a program. Options come from persistent volumes and classes:
// they cannot make the mount one of something else. The error is a [parameter.Error].
func CheckFileSystem(fsType string, options []string) error {
	if fsType != "" && !slices.Contains(fileSystems(), strings.ToLower(fsType)) {
		return &parameter.Error{Key: "fsType", Value: short(fsType), Allowed: "want " + strings.Join(fileSystems(), ", ")}
	}
	text := strings.Join(options, ",")
	if len(text) > mostOptions {
		return &parameter.Error{Key: "mountOptions", Value: short(text),
			Allowed: fmt.Sprintf("%d bytes: want at most %d", len(text), mostOptions)}
	}
	for option := range strings.SplitSeq(text, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(option), "=")
		if slices.Contains([]string{"bind", "rbind", "move", "remount"}, strings.ToLower(name)) ||
			strings.ContainsFunc(option, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return &parameter.Error{Key: "mountOptions", Value: short(option),
				Allowed: "want options of a file system, without control characters, bind, rbind, move and remount"}
		}
	}
	return nil
}

// short returns a text that fits into an error.
func short(text string) string {
	const most = 64
	return text[:min(len(text), most)]
}
