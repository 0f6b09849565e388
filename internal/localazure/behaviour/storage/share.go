package storage

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage/lease"
)

// defaultRetention is the number of days for which an account keeps deleted shares.
const defaultRetention = 7

// deletedField is the field of a file service's document with its deleted shares.
const deletedField = behaviour.Private + "deletedShares"

// contentField is the field of a share's document with the name of its content, which the data plane has. Azure never gives a name
// twice, so a share that is created again is empty, and one that is restored has its content.
const contentField = behaviour.Private + "content"

func shares() behaviour.Type {
	return behaviour.Type{
		Name:    ShareType,
		Style:   unconditional(child(behaviour.Ticks)),
		NoState: true,
		Own: []string{
			snapshotsField, contentField, leaseField, "properties.lastModifiedTime", "properties.accessTierChangeTime",
			"properties.leaseStatus", "properties.leaseState", "properties.leaseDuration", "properties.deleted", "properties.version",
			"properties.includedBurstIops", "properties.maxBurstCreditsForIops",
		},
		Fill:    fillShare,
		Show:    showShare,
		All:     listShares,
		Filter:  startsWith,
		Refuse:  refuseWithSnapshots,
		Removed: keepDeleted,
		Missing: missing("ShareNotFound", "share"),

		Version: snapshotView, RemoveVersion: removeSnapshot,
		Actions: map[string]behaviour.Action{
			"restore": {Do: restore, OnAbsent: true},
			"lease":   leaseAction(lease.Share),
		},
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
	model, ok := modelOf(account)
	if !ok {
		return behaviour.Conflict("FeatureNotSupportedForAccount", "File is not supported for the account.")
	}
	for _, step := range []func(*behaviour.Call, billing, behaviour.Object) error{fillProtocol, fillQuota, fillPerformance, fillTier,
		fillDecreases} {
		if err := step(c, model, account); err != nil {
			return err
		}
	}
	behaviour.Default(c.Doc, contentField, c.GUID())
	behaviour.Set(c.Doc, "properties.lastModifiedTime", behaviour.Timestamp(c.Now()))
	return nil
}

// fillProtocol checks the protocol and the squash of root.
func fillProtocol(c *behaviour.Call, model billing, account behaviour.Object) error {
	const path, squash = "properties.enabledProtocols", "properties.rootSquash"
	had := behaviour.Text(c.Old, path)
	if had != "" {
		behaviour.Default(c.Doc, path, had)
	}
	protocol := behaviour.Text(c.Doc, path)
	if protocol == "NFS" && !model.nfs {
		return behaviour.Invalid("ProtocolNotSupported",
			"The protocol 'NFS' is not supported for shares of an account with sku '%s'. It needs a FileStorage account with a "+
				"Premium sku.", behaviour.Text(account, "sku.name"))
	}
	if c.Old != nil && (protocol == "NFS") != (had == "NFS") {
		return behaviour.Invalid("InvalidRequestPropertyValue",
			"The value '%s' is not allowed for property enabledProtocols: the protocol of a share cannot change.", protocol)
	}
	if protocol == "NFS" {
		root := "NoRootSquash"
		if was := behaviour.Text(c.Old, squash); was != "" {
			root = was
		}
		behaviour.Default(c.Doc, squash, root)
	} else if root := behaviour.Text(c.Doc, squash); root != "" {
		return behaviour.Invalid("InvalidRequestPropertyValue",
			"The value '%s' is not allowed for property rootSquash: only shares with the protocol NFS have it.", root)
	}
	return nil
}

// tiers are the access tiers of shares of accounts without provisioned capacity.
var tiers = []string{"TransactionOptimized", "Hot", "Cool"}

func fillTier(c *behaviour.Call, model billing, _ behaviour.Object) error {
	allowed := tiers
	if model.tier != "" {
		allowed = []string{model.tier}
	}
	tier := allowed[0]
	if was := behaviour.Text(c.Old, "properties.accessTier"); was != "" {
		tier = was
	}
	behaviour.Default(c.Doc, "properties.accessTier", tier)
	if given := behaviour.Text(c.Doc, "properties.accessTier"); !slices.Contains(allowed, given) {
		return behaviour.Invalid("InvalidRequestPropertyValue",
			"The value '%s' is not allowed for property accessTier of a share of this account. The allowed values are %s.", given,
			strings.Join(allowed, ", "))
	}
	if c.Old == nil || c.Changed("properties.accessTier") {
		behaviour.Set(c.Doc, "properties.accessTierChangeTime", behaviour.Timestamp(c.Now()))
	}
	return nil
}

func showShare(c *behaviour.Call, view behaviour.Object) {
	snapshots, held := behaviour.Objects(view, snapshotsField), LeaseOf(view)
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
	showBurst(c, view)
	showLease(view, held, c.Now(), asIs)
}

// listShares lists the shares of a file service, with the deleted shares and the snapshots if $expand asks for them.
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

// Content returns the name of the content of a share's document.
func Content(share behaviour.Object) string { return behaviour.Text(share, contentField) }

// Contents returns the names of the content of all shares, also of the deleted shares that can be restored.
func Contents(w behaviour.World) map[string]bool {
	all := map[string]bool{}
	for _, share := range behaviour.Everywhere(w, ShareType) {
		all[Content(share)] = true
	}
	for _, files := range behaviour.Everywhere(w, AccountType+"/fileServices") {
		for _, share := range behaviour.Objects(files, deletedField) {
			if remaining(files, share, w.Now()) >= 0 {
				all[Content(share)] = true
			}
		}
	}
	return all
}

// ListShares returns the shares of a file service as a list with $expand shows them.
func ListShares(w behaviour.World, files azure.ID, expand []string) []behaviour.Object {
	c := &behaviour.Call{World: w, Verb: behaviour.List, ID: files, Type: &behaviour.Type{Name: ShareType},
		Query: url.Values{"$expand": {strings.Join(expand, ",")}}}
	items, err := listShares(c)
	if err != nil { // only writes are refused
		return nil
	}
	return items
}

// NameContents names the content of shares that have none, such as shares of an older state file.
func NameContents(w behaviour.World) {
	var without []azure.ID
	for id, share := range behaviour.Everywhere(w, ShareType) {
		if Content(share) == "" {
			without = append(without, id)
		}
	}
	for _, id := range without {
		w.Edit(id, func(doc behaviour.Object) { doc[contentField] = w.GUID() })
	}
}
