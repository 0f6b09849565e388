package share

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
)

// Cluster is the part of the cloud configuration that shares depend on.
type Cluster struct {
	Subscription, ResourceGroup, Location string
	// NetworkSubscription, VNetGroup, VNet and Subnet name the nodes' network.
	NetworkSubscription, VNetGroup, VNet, Subnet string
	// Suffix is the end of the names of storage services, such as core.windows.net.
	Suffix string
}

// Volume is the parts of a volume id: RG#ACCOUNT#SHARE#DISK#UUID#NAMESPACE#SUBSCRIPTION. DISK is a file in the share with a
// file system, NAME.vhd. UUID is the name of a volume that differs from the name of its share. NAMESPACE is the namespace of the
// Secret with the key.
//
// Kubernetes translates volumes of the in-tree driver to RG#ACCOUNT#SHARE#NAME#NAMESPACE, where RG is mostly empty and NAME is that of
// the persistent volume or of the pod's volume. If the volume's Secret has a name of its own, ACCOUNT is the name of the Secret.
type Volume struct {
	Group, Account, Share, Disk, UUID, Namespace, Subscription string
	// Translated says that it is a volume of the in-tree driver.
	Translated bool
}

// String returns the volume id. The subscription is left out if it is empty.
func (v Volume) String() string {
	text := strings.Join([]string{v.Group, v.Account, v.Share, v.Disk, v.UUID, v.Namespace}, "#")
	if v.Subscription != "" {
		text += "#" + v.Subscription
	}
	return text
}

const (
	fewestParts = 3 // RG#ACCOUNT#SHARE
	mostParts   = 8 // of a snapshot of a volume in another subscription
)

// The indices of a volume id's parts.
const (
	partDisk         = 3
	partUUID         = 4
	partNamespace    = 5
	partSubscription = 6
)

// translatedParts is the number of parts of a volume of the in-tree driver. Early volumes of the CSI driver have as many, and no name.
const translatedParts = 5

// ParseVolume parses a volume id.
func ParseVolume(id string) (Volume, error) {
	parts := strings.Split(id, "#")
	if len(parts) < fewestParts || parts[2] == "" {
		return Volume{}, fmt.Errorf("volume id %q: want RESOURCEGROUP#ACCOUNT#SHARE, and more parts after another #", id)
	}
	at := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	v := Volume{Group: parts[0], Account: parts[1]}
	v.Share, _, _ = strings.Cut(parts[2], "/")
	name := at(partDisk)
	isDisk := len(name) >= len(vhd) && strings.EqualFold(name[len(name)-len(vhd):], vhd)
	v.Translated = len(parts) == translatedParts && (v.Group == "" || name != "" && !isDisk)
	if v.Translated {
		v.UUID, v.Namespace = name, at(partUUID)
	} else {
		v.UUID, v.Namespace = at(partUUID), at(partNamespace)
		if isDisk {
			v.Disk = name
		}
	}
	if isGUID(at(partSubscription)) {
		v.Subscription = at(partSubscription)
	}
	for what, text := range map[string]string{"disk": name, "namespace": v.Namespace} {
		if slices.Contains(strings.Split(text, "/"), "..") {
			return Volume{}, fmt.Errorf("volume id %q: %s %q: want no path with .. in it", id, what, text)
		}
	}
	return v, nil
}

// vhd is the end of the name of a file with a file system.
const vhd = ".vhd"

// TranslatedID returns the id that Kubernetes gives to a persistent volume of the in-tree driver.
func TranslatedID(group, secret, share, volume, namespace string) string {
	account := secret
	if found := keySecret.FindStringSubmatch(secret); found != nil {
		account = found[1]
	}
	return strings.Join([]string{group, account, share, volume, namespace}, "#")
}

// keySecret is the name of a Secret as [SecretName] gives it.
var keySecret = regexp.MustCompile(`azure-storage-account-(.+)-secret`)

var guid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

func isGUID(text string) bool { return guid.MatchString(text) }

// AccountID returns the id of a volume's account.
func (c Cluster) AccountID(v Volume) azure.ID {
	return azure.GroupID(cmp.Or(v.Subscription, c.Subscription), cmp.Or(v.Group, c.ResourceGroup)).Resource(storage.Accounts, v.Account)
}

// ShareID returns the id of a volume's share.
func (c Cluster) ShareID(v Volume) azure.ID { return storage.ShareOf(c.AccountID(v), v.Share) }

// snapshotTime is the format of the time of a snapshot.
const snapshotTime = "2006-01-02T15:04:05.0000000Z"

// Snapshot is the parts of a snapshot id: VOLUME#TIME, and its subscription.
type Snapshot struct {
	Volume Volume
	Time   string
}

// SnapshotID returns the id of a snapshot of a volume.
func SnapshotID(volume, at, subscription string) string {
	return volume + "#" + at + "#" + subscription
}

// ParseSnapshot parses a snapshot id. The subscription can be before or after the time.
func ParseSnapshot(id string) (Snapshot, error) {
	parts := strings.Split(id, "#")
	wrong := fmt.Errorf("snapshot id %q: want VOLUME#TIME#SUBSCRIPTION", id)
	if len(parts) <= fewestParts || len(parts) > mostParts+1 {
		return Snapshot{}, wrong
	}
	at := -1
	for i := len(parts) - 1; i >= fewestParts; i-- {
		if IsTime(parts[i]) {
			at = i
			break
		}
	}
	if at < 0 {
		return Snapshot{}, wrong
	}
	subscription := ""
	for _, part := range parts[at+1:] {
		if isGUID(part) {
			subscription = part
		}
	}
	v, err := ParseVolume(strings.Join(parts[:at], "#"))
	if err != nil {
		return Snapshot{}, wrong
	}
	if last := parts[at-1]; isGUID(last) && v.Subscription == "" && at < partSubscription {
		v.Subscription = last
		if v.UUID == last {
			v.UUID = ""
		}
	}
	v.Subscription = cmp.Or(subscription, v.Subscription)
	return Snapshot{Volume: v, Time: parts[at]}, nil
}

// IsTime reports whether a text is the time of a snapshot.
func IsTime(text string) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// FormatTime returns the time of a snapshot as ids have it. A text that is no time stays as it is.
func FormatTime(text string) string {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return t.UTC().Format(snapshotTime)
}

// SecretName returns the name of the Secret with the key of an account.
func SecretName(account string) string { return "azure-storage-account-" + account + "-secret" }

// Host returns the name of the file server of an account.
func (c Cluster) Host(account, suffix string) string {
	return account + ".file." + cmp.Or(suffix, c.Suffix, "core.windows.net")
}

// PrivateHost returns the name of the file server of an account with a private endpoint.
func (c Cluster) PrivateHost(account, suffix string) string {
	return account + ".privatelink.file." + cmp.Or(suffix, c.Suffix, "core.windows.net")
}
