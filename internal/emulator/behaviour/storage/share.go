package storage

import (
	"maps"
	"regexp"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// Limits of share quotas in GiB.
const (
	smallShare = 5120
	largeShare = 102400
)

// defaultRetention is the number of days for which an account keeps deleted shares.
const defaultRetention = 7

// deletedField is the field of a file service's document with its deleted shares.
const deletedField = behaviour.Private + "deletedShares"

// snapshotsField is the field of a share's document with its snapshots.
const snapshotsField = behaviour.Private + "snapshots"

func shares() behaviour.Type {
	return behaviour.Type{
		Name:    accountType + "/fileServices/shares",
		Style:   child(behaviour.Ticks),
		NoState: true,
		Own: []string{
			snapshotsField, "properties.lastModifiedTime", "properties.accessTierChangeTime", "properties.leaseStatus",
			"properties.leaseState",
			"properties.deleted", "properties.version",
		},
		Fill:    fillShare,
		Show:    showShare,
		All:     listShares,
		Filter:  startsWith,
		Refuse:  refuseWithSnapshots,
		Removed: keepDeleted,
		Missing: missing("ShareNotFound", "share"),
		Actions: map[string]behaviour.Action{"restore": {Do: restore, Anew: true}},
	}
}

var shareName = regexp.MustCompile(`^[a-z0-9]([a-z0-9]|-[a-z0-9])*$`)

func fillShare(c *behaviour.Call) error {
	if err := checkStorageName(c.ID.Name(), shareName); err != nil {
		return err
	}
	if c.Expands("snapshots") {
		return addSnapshot(c)
	}
	account, _ := c.Get(accountOf(c.ID))
	premium := strings.HasPrefix(behaviour.Text(account, "sku.name"), "Premium")
	if kind := behaviour.Text(account, "kind"); kind == "BlobStorage" || kind == "BlockBlobStorage" || premium && kind != "FileStorage" {
		return behaviour.Conflict("FeatureNotSupportedForAccount", "File is not supported for the account.")
	}
	if protocol := behaviour.Text(c.Doc, "properties.enabledProtocols"); protocol == "NFS" && !premium {
		return behaviour.Invalid("ProtocolNotSupported",
			"The protocol 'NFS' is not supported for shares of an account with sku '%s'. It needs a FileStorage account with a "+
				"Premium sku.", behaviour.Text(account, "sku.name"))
	}
	if was := behaviour.Text(c.Old, "properties.enabledProtocols"); was != "" {
		behaviour.Default(c.Doc, "properties.enabledProtocols", was)
	}
	if err := fillQuota(c, account, premium); err != nil {
		return err
	}
	fillTier(c, premium)
	behaviour.Set(c.Doc, "properties.lastModifiedTime", behaviour.Timestamp(c.Now()))
	return nil
}

func fillQuota(c *behaviour.Call, account behaviour.Object, premium bool) error {
	const path = "properties.shareQuota"
	most := smallShare
	if premium || behaviour.Text(account, "kind") == "FileStorage" ||
		behaviour.Text(account, "properties.largeFileSharesState") == "Enabled" {
		most = largeShare
	}
	if was := behaviour.At(c.Old, path); was != nil {
		behaviour.Default(c.Doc, path, was)
	}
	behaviour.Default(c.Doc, path, most)
	quota, whole := behaviour.Int(c.Doc, path)
	if !whole || quota < 1 || quota > most {
		return behaviour.Invalid("InvalidHeaderValue",
			"The value for one of the HTTP headers is not in the correct format: shareQuota is %v GiB, 1 to %d are allowed.",
			behaviour.At(c.Doc, path), most)
	}
	behaviour.Set(c.Doc, path, quota)
	return nil
}

func fillTier(c *behaviour.Call, premium bool) {
	tier := "TransactionOptimized"
	if premium {
		tier = "Premium"
	}
	if was := behaviour.Text(c.Old, "properties.accessTier"); was != "" {
		tier = was
	}
	behaviour.Default(c.Doc, "properties.accessTier", tier)
	if c.Old == nil || c.Changed("properties.accessTier") {
		behaviour.Set(c.Doc, "properties.accessTierChangeTime", behaviour.Timestamp(c.Now()))
	}
}

func showShare(c *behaviour.Call, view behaviour.Object) {
	snapshots := behaviour.Objects(view, snapshotsField)
	behaviour.Hide(view)
	switch c.Verb {
	case behaviour.Create, behaviour.Update, behaviour.Patch:
		behaviour.KeepOnly(view, c.Body, "properties")
		if c.Expands("snapshots") && len(snapshots) > 0 {
			maps.Copy(behaviour.Sub(view, "properties"), snapshots[len(snapshots)-1])
		}
		delete(view, "etag")
		return
	case behaviour.List:
		behaviour.Default(view, "properties.enabledProtocols", "SMB")
	default:
		if behaviour.Text(view, "properties.enabledProtocols") == "SMB" {
			behaviour.Remove(view, "properties.enabledProtocols")
		}
		behaviour.Default(view, "properties.signedIdentifiers", []any{})
		if c.Expands("stats") {
			behaviour.Set(view, "properties.shareUsageBytes", 0)
		}
	}
	behaviour.Default(view, "properties.leaseStatus", "unlocked")
	behaviour.Default(view, "properties.leaseState", "available")
}

// addSnapshot adds a snapshot to a share, which otherwise stays as it is.
func addSnapshot(c *behaviour.Call) error {
	if c.Old == nil {
		return notFound(c, "ShareNotFound", "share")
	}
	metadata := behaviour.At(c.Doc, "properties.metadata")
	clear(c.Doc)
	maps.Copy(c.Doc, behaviour.Clone(c.Old))
	snapshot := behaviour.Object{"snapshotTime": behaviour.Timestamp(c.Now())}
	if metadata != nil {
		snapshot["metadata"] = metadata
	}
	c.Doc[snapshotsField] = append(behaviour.Array(c.Doc, snapshotsField), snapshot)
	return nil
}

// refuseWithSnapshots refuses to delete a share with snapshots, unless the request includes them.
func refuseWithSnapshots(c *behaviour.Call) error {
	if len(behaviour.Array(c.Old, snapshotsField)) > 0 && !strings.EqualFold(c.Query.Get("$include"), "snapshots") {
		return behaviour.Conflict("ShareHasSnapshots", "The share has snapshots and the operation requires no snapshots.")
	}
	return nil
}

// snapshotViews returns the snapshots of a share as the list of shares shows them.
func snapshotViews(doc behaviour.Object) []behaviour.Object {
	var views []behaviour.Object
	for _, snapshot := range behaviour.Objects(doc, snapshotsField) {
		view := behaviour.Clone(doc)
		maps.Copy(behaviour.Sub(view, "properties"), behaviour.Clone(snapshot))
		views = append(views, view)
	}
	return views
}

// listShares lists the shares of a file service, with the deleted ones and the snapshots if $expand asks for them.
func listShares(c *behaviour.Call) ([]behaviour.Object, error) {
	items := []behaviour.Object{}
	for _, doc := range c.List(c.ID, c.Type.Name) {
		views := []behaviour.Object{behaviour.Clone(doc)}
		if c.Expands("snapshots") {
			views = append(views, snapshotViews(doc)...)
		}
		for _, view := range views {
			showShare(c, view)
			items = append(items, view)
		}
	}
	if !c.Expands("deleted") {
		return items, nil
	}
	files, _ := c.Get(c.ID)
	for _, doc := range behaviour.Objects(files, deletedField) {
		left := remaining(files, doc, c.Now())
		if left < 0 {
			continue
		}
		view := behaviour.Clone(doc)
		showShare(c, view)
		behaviour.Set(view, "properties.remainingRetentionDays", left)
		items = append(items, view)
	}
	return items, nil
}

// retention returns the number of days for which a file service keeps deleted shares, 0 for none.
func retention(files behaviour.Object) int {
	const policy = "properties.shareDeleteRetentionPolicy"
	if behaviour.Sub(files, policy) == nil {
		return defaultRetention
	}
	if !behaviour.Bool(files, policy+".enabled") {
		return 0
	}
	days, ok := behaviour.Int(files, policy+".days")
	if !ok {
		return defaultRetention
	}
	return days
}

// remaining returns the number of days for which a deleted share can be restored, below 0 if it cannot.
func remaining(files, deleted behaviour.Object, now time.Time) int {
	at, err := time.Parse(time.RFC3339Nano, behaviour.Text(deleted, "properties.deletedTime"))
	if err != nil {
		return -1
	}
	const day = 24 * time.Hour
	left := at.Add(time.Duration(retention(files)) * day).Sub(now)
	if left <= 0 {
		return -1
	}
	return int((left + day - 1) / day)
}

// keepDeleted adds a deleted share to the shares that can be restored.
func keepDeleted(c *behaviour.Call) error {
	files := c.ID.Parent()
	service, _ := c.Get(files)
	if retention(service) == 0 {
		return nil
	}
	doc := behaviour.Clone(c.Old)
	behaviour.Set(doc, "properties.deleted", true)
	behaviour.Set(doc, "properties.deletedTime", behaviour.Timestamp(c.Now()))
	behaviour.Set(doc, "properties.version", strings.ToUpper(strings.ReplaceAll(c.GUID(), "-", "")[:16]))
	c.Edit(files, func(service behaviour.Object) {
		service[deletedField] = append(behaviour.Array(service, deletedField), doc)
	})
	return nil
}

// restore restores a deleted share under its name.
func restore(c *behaviour.Call) (any, error) {
	name, version := behaviour.Text(c.Body, "deletedShareName"), behaviour.Text(c.Body, "deletedShareVersion")
	files := c.ID.Parent()
	service, _ := c.Get(files)
	kept, found := []any{}, behaviour.Object(nil)
	for _, doc := range behaviour.Objects(service, deletedField) {
		if strings.EqualFold(behaviour.Text(doc, "name"), name) &&
			strings.EqualFold(behaviour.Text(doc, "properties.version"), version) && remaining(service, doc, c.Now()) >= 0 {
			found = behaviour.Clone(doc)
			continue
		}
		kept = append(kept, doc)
	}
	if found == nil {
		return nil, notFound(c, "ShareNotFound", "share")
	}
	if _, taken := c.Get(files.Child("shares", c.ID.Name())); taken {
		return nil, behaviour.Conflict("ShareAlreadyExists", "The specified share already exists.")
	}
	for _, field := range []string{"deleted", "deletedTime", "version"} {
		behaviour.Remove(found, "properties."+field)
	}
	c.Edit(files, func(service behaviour.Object) { service[deletedField] = kept })
	c.Put(files.Child("shares", c.ID.Name()), found)
	return nil, nil
}

// Share returns the document of a share, for the data plane.
func Share(w behaviour.World, account azure.ID, name string) (behaviour.Object, bool) {
	return w.Get(account.Child("fileServices", "default").Child("shares", name))
}
