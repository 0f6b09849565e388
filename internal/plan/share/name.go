package share

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"kaz/internal/plan/parameter"
)

// longestName is the length of the longest name of a share.
const longestName = 63

var shareName = regexp.MustCompile(`^[a-z0-9]([a-z0-9]|-[a-z0-9])*$`)

// CheckName returns why a text is not the name of a share, nil if it is.
func CheckName(name string) error {
	if len(name) < 3 || len(name) > longestName || !shareName.MatchString(name) {
		return fmt.Errorf("want 3 to %d of a-z, 0-9 and -, with a letter or digit at both ends and no two - side by side", longestName)
	}
	return nil
}

// Expand replaces the references to a claim and a volume in a text, such as ${pvc.metadata.name}.
func (p *Parameters) Expand(text string) string {
	for reference, value := range map[string]string{
		"${pvc.metadata.name}": p.PVCName, "${pvc.metadata.namespace}": p.PVCNamespace, "${pv.metadata.name}": p.PVName,
	} {
		if value != "" {
			text = strings.ReplaceAll(text, reference, value)
		}
	}
	return text
}

// NameOf returns the name of the share of a volume: the name that the class gives, or one made of the volume's name. The
// same volume always has the same share.
func (p *Parameters) NameOf(volume string) (string, error) {
	if p.ShareName != "" {
		name := p.Expand(p.ShareName)
		if err := CheckName(name); err != nil {
			return "", &parameter.Error{Key: "shareName", Value: name, Allowed: err.Error()}
		}
		return name, nil
	}
	name := strings.ToLower(volume)
	switch {
	case p.SharePrefix != "":
		name = p.SharePrefix + "-" + name
	case p.NFS():
		name = strings.Replace(name, "pvc", "pvcn", 1)
	}
	if len(name) <= longestName {
		name = strings.Replace(name, "--", "-", 1)
	}
	if CheckName(name) == nil {
		return name, nil
	}
	return hashed(volume), nil
}

// hashed returns a name for a volume with a name that no share can have.
func hashed(volume string) string {
	sum := sha256.Sum256([]byte(volume))
	return "pvc-file-dynamic-" + hex.EncodeToString(sum[:16])
}
