package share

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kaz/internal/plan/parameter"
)

// Limits of what a mount is made of. They are also the limits of mount.cifs, of the kernel's mount options and of the names in Azure.
const (
	mostAttribute = 4096 // bytes of an attribute
	mostOptions   = 4000 // bytes of all mount options; the kernel takes one page with what the mount program adds
	mostFolder    = 1024 // bytes of the path of a folder
	mostHost      = 253  // bytes of the name of a host
)

// tokensKey is the attribute with the tokens of the pod's service account, which are longer than other attributes.
const tokensKey = "csi.storage.k8s.io/serviceAccount.tokens"

// CheckSizes returns why attributes are too long, nil if they are not.
func CheckSizes(attributes map[string]string) error {
	const mostTokens = 64 << 10
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		most := mostAttribute
		if key == tokensKey {
			most = mostTokens
		}
		if size := len(attributes[key]); size > most {
			return fmt.Errorf("attribute %.64q has %d bytes: want at most %d", key, size, most)
		}
	}
	return nil
}

// Credentials of an account are its name and key. mount.cifs reads at most mostKey bytes of a password.
const mostKey = 512

var anyAccount = regexp.MustCompile(`^[A-Za-z0-9]{3,24}$`)

// CheckAccount returns why a text is not the name of a storage account, nil if it is.
func CheckAccount(name string) error {
	if !anyAccount.MatchString(name) {
		return fmt.Errorf("%.64q (%d bytes) is not allowed: want 3 to 24 letters and digits", name, len(name))
	}
	return nil
}

// CheckKey returns why a text is not the key of a storage account, nil if it can be one. The error does not have the text.
func CheckKey(key string) error {
	if len(key) > mostKey {
		return fmt.Errorf("%d bytes are not allowed: want at most %d", len(key), mostKey)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("%d bytes with characters that are not allowed: want printable ASCII, such as base64", len(key))
	}
	return nil
}

var (
	hostName     = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)
	groupName    = regexp.MustCompile(`^[\p{L}\p{N}_().-]{0,90}$`)
	subscription = regexp.MustCompile(`^[A-Za-z0-9-]{0,64}$`)
	oneSegment   = regexp.MustCompile(`^[^/\\]*$`)
)

// control reports whether a text has a control character, such as a newline or NUL.
func control(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// checkFolder returns why a text is not a path in a share, nil if it is. Mount programs write the path into a list with commas.
func checkFolder(folder string) error {
	if len(folder) > mostFolder {
		return fmt.Errorf("%d bytes are not allowed: want at most %d", len(folder), mostFolder)
	}
	for segment := range strings.SplitSeq(folder, "/") {
		if segment == "" || strings.Trim(segment, ". ") == "" || strings.HasSuffix(segment, ".") || strings.HasSuffix(segment, " ") ||
			strings.ContainsAny(segment, `\:*?"<>|,`) || control(segment) {
			return fmt.Errorf(`want folders separated by /, without . and .. and \ : * ? " < > | and commas, and no dot or blank at an end`)
		}
	}
	return nil
}

// checkHost returns why a text is not the name or the address of a host, nil if it is.
func checkHost(host string) error {
	if address, err := netip.ParseAddr(host); err == nil && address.Zone() == "" {
		return nil
	}
	if len(host) > mostHost || !hostName.MatchString(host) {
		return fmt.Errorf("want the name or the address of a host: at most %d letters, digits, - and dots", mostHost)
	}
	return nil
}

// checkOption returns why a text is not one mount option, nil if it is. An option names itself and has no separator of options.
func checkOption(option string) error {
	if control(option) {
		return fmt.Errorf("want options without control characters")
	}
	return nil
}

// Check returns why a share cannot be mounted so, nil if it can. It looks at what reaches the mount program, with all references
// such as ${pvc.metadata.name} replaced. The account can be empty while it is not known. The error is a [parameter.Error].
func (m Mounting) Check() error {
	type check struct {
		key, value string
		err        error
	}
	checks := []check{
		{"shareName", m.Share, checkFolder(m.Share)},
		{"resourceGroup", m.ResourceGroup, matches(groupName, m.ResourceGroup, "want the name of a resource group")},
		{"subscriptionID", m.Subscription, matches(subscription, m.Subscription, "want the id of a subscription")},
	}
	if m.Account != "" || m.Server != "" {
		checks = append(checks, check{"server", m.Host, checkHost(m.Host)})
	}
	if m.Account != "" {
		checks = append(checks, check{"storageAccount", m.Account, CheckAccount(m.Account)})
	}
	if folder := m.Expand(m.Folder); folder != "" {
		checks = append(checks, check{"folderName", folder, checkFolder(folder)})
	}
	if m.Group != "" {
		_, err := strconv.ParseUint(m.Group, 10, 32)
		checks = append(checks, check{"volume_mount_group", m.Group, err})
	}
	options := m.Mount().Options
	for _, option := range options {
		checks = append(checks, check{"mountOptions", option, checkOption(option)})
	}
	if size := len(strings.Join(options, ",")); size > mostOptions {
		return &parameter.Error{Key: "mountOptions", Value: fmt.Sprintf("%d bytes", size),
			Allowed: fmt.Sprintf("want at most %d", mostOptions)}
	}
	for _, c := range checks {
		if c.err != nil {
			return &parameter.Error{Key: c.key, Value: c.value, Allowed: c.err.Error()}
		}
	}
	return nil
}

func matches(allowed *regexp.Regexp, text, want string) error {
	if !allowed.MatchString(text) {
		return fmt.Errorf("%s", want)
	}
	return nil
}

// CheckInlineNames returns why an inline volume cannot have its share and folder, with all references replaced, nil if it can.
func (m Mounting) CheckInlineNames() error {
	if !oneSegment.MatchString(m.Share) {
		return &parameter.Error{Key: "shareName", Value: m.Share, Allowed: `want the name of a share, without / and \`}
	}
	return nil
}

// The values that a mount option of an inline volume can have.
var (
	flag      = regexp.MustCompile(`^$`)
	mode      = regexp.MustCompile(`^0?[0-7]{3}$`) // no set-user-id, set-group-id and sticky bits
	number    = regexp.MustCompile(`^[0-9]{1,9}$`)
	userID    = regexp.MustCompile(`^[0-9]{1,10}$`)
	oneToTen  = regexp.MustCompile(`^([1-9]|1[0-6])$`)
	cacheKind = regexp.MustCompile(`^(none|strict|loose)$`)
	version   = regexp.MustCompile(`^(default|2\.1|3|3\.0|3\.02|3\.1\.1)$`)
)

// inlineOptions are the mount options of inline volumes with the shape of their values. The author of a pod chooses them, and root
// mounts: no option names a file, a user, a host or another way to sign in, and none gives files of a share rights on the node.
func inlineOptions() map[string]*regexp.Regexp {
	table := map[string]*regexp.Regexp{
		"file_mode": mode, "dir_mode": mode, "uid": userID, "gid": userID,
		"actimeo": number, "acregmax": number, "acdirmax": number, "closetimeo": number, "handletimeout": number, "echo_interval": number,
		"rsize": number, "wsize": number, "bsize": number, "rasize": number, "retrans": number,
		"max_channels": oneToTen, "cache": cacheKind, "vers": version,
	}
	for _, name := range []string{
		"ro", "rw", "nosuid", "nodev", "noexec", "exec", "noatime", "atime", "relatime", "norelatime", "strictatime",
		"nodiratime", "diratime",
		"sync", "async", "dirsync", "forceuid", "noforceuid", "forcegid", "noforcegid", "mfsymlinks", "nosharesock", "nobrl", "brl",
		"nostrictsync", "strictsync", "serverino", "noserverino", "nocase", "mapposix", "mapchars", "nomapchars", "nomapposix",
		"hard", "soft", "seal", "nohandlecache", "handlecache", "persistenthandles", "nopersistenthandles", "resilienthandles",
		"noresilienthandles", "multichannel", "nomultichannel", "nolease", "noperm", "perm", "noacl", "nouser_xattr", "sloppy",
	} {
		table[name] = flag
	}
	return table
}

// checkInlineOptions returns why the author of a pod cannot choose mount options, nil if that is allowed.
func checkInlineOptions(text string) error {
	table := inlineOptions()
	for _, option := range split([]string{text}) {
		name, value, given := strings.Cut(option, "=")
		shape, known := table[name]
		switch {
		case !known:
			return fmt.Errorf("%.64q is not an option of inline volumes: want %s", option,
				strings.Join(slices.Sorted(maps.Keys(table)), ", "))
		case given == (shape == flag) || !shape.MatchString(value):
			return fmt.Errorf("%.64q: the value of %s is not allowed: want %s", option, name, shape)
		}
	}
	return nil
}
