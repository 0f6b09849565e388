package file

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/storage"
)

// shareHeaders are the headers of a share's properties, and their paths in its document.
var shareHeaders = []struct {
	header, property string
	number           bool
}{
	{"x-ms-share-quota", "shareQuota", true},
	{"x-ms-access-tier", "accessTier", false},
	{"x-ms-enabled-protocols", "enabledProtocols", false},
	{"x-ms-root-squash", "rootSquash", false},
	{"x-ms-share-provisioned-iops", "provisionedIops", true},
	{"x-ms-share-provisioned-bandwidth-mibps", "provisionedBandwidthMibps", true},
}

// shareProperties returns the properties that a request gives.
func (c *call) shareProperties() (behaviour.Object, error) {
	properties := behaviour.Object{}
	for _, p := range shareHeaders {
		text := c.r.Header.Get(p.header)
		if text == "" {
			continue
		}
		properties[p.property] = text
		if p.number {
			n, err := strconv.Atoi(text)
			if err != nil {
				return nil, invalidHeader(p.header, text, "a whole number")
			}
			properties[p.property] = n
		}
	}
	return properties, nil
}

// metadata returns the x-ms-meta headers.
func (c *call) metadata() map[string]string {
	const prefix = "X-Ms-Meta-"
	found := map[string]string{}
	for name, values := range c.r.Header {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			found[strings.ToLower(name[len(prefix):])] = strings.Join(values, ",")
		}
	}
	return found
}

func object(metadata map[string]string) behaviour.Object {
	all := behaviour.Object{}
	for name, value := range metadata {
		all[name] = value
	}
	return all
}

func (c *call) createShare() error {
	properties, err := c.shareProperties()
	if err != nil {
		return err
	}
	if metadata := c.metadata(); len(metadata) > 0 {
		properties["metadata"] = object(metadata)
	}
	id := c.account.share(c.target.share)
	err = c.service.Azure.Do(func(w behaviour.World) error {
		if _, there := w.Get(id); there {
			return refuse(http.StatusConflict, "ShareAlreadyExists", "The specified share already exists.")
		}
		return w.Apply(id, behaviour.Object{"properties": properties})
	})
	if err != nil {
		return err
	}
	return c.answerShare(http.StatusCreated)
}

// answerShare answers with the headers of the share after a change.
func (c *call) answerShare(status int) error {
	_, doc, err := c.share()
	if err != nil {
		return err
	}
	c.shareStamp(doc)
	c.w.WriteHeader(status)
	return nil
}

// shareStamp writes the ETag and the time of the last change.
func (c *call) shareStamp(doc behaviour.Object) {
	h := c.w.Header()
	h.Set("ETag", behaviour.Text(doc, "etag"))
	h.Set("Last-Modified", httpTime(behaviour.Text(doc, "properties.lastModifiedTime")))
}

// httpTime converts a time of a document to the form of headers.
func httpTime(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return ""
	}
	return at.UTC().Format(http.TimeFormat)
}

func (c *call) getShare() error {
	_, doc, err := c.share()
	if err != nil {
		return err
	}
	metadata, quota := behaviour.Sub(doc, "properties.metadata"), behaviour.At(doc, "properties.shareQuota")
	if c.target.snapshot != "" {
		at, err := findSnapshot(doc, c.target.snapshot)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(storage.Snapshots(doc), func(s storage.Snapshot) bool { return s.Time.Equal(at) })
		snapshot := storage.Snapshots(doc)[i]
		metadata, quota = snapshot.Metadata, snapshot.QuotaGiB
	}
	c.shareStamp(doc)
	h := c.w.Header()
	for _, p := range shareHeaders {
		if value := behaviour.At(doc, "properties."+p.property); value != nil && p.property != "shareQuota" {
			h.Set(p.header, text(value))
		}
	}
	h.Set("x-ms-share-quota", text(quota))
	if h.Get("x-ms-enabled-protocols") == "" {
		h.Set("x-ms-enabled-protocols", "SMB")
	}
	if at := httpTime(behaviour.Text(doc, "properties.accessTierChangeTime")); at != "" {
		h.Set("x-ms-access-tier-change-time", at)
	}
	h.Set("x-ms-lease-status", "unlocked")
	h.Set("x-ms-lease-state", "available")
	h.Set("x-ms-has-immutability-policy", "false")
	h.Set("x-ms-has-legal-hold", "false")
	for name, value := range metadata {
		setMeta(h, name, text(value))
	}
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// text returns a value of a document as headers have it.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case int64:
		return formatInt(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// deleteShare deletes a share or a snapshot. Unlike Azure Resource Manager it refuses to delete a share with snapshots, unless the
// request includes them.
func (c *call) deleteShare() error {
	id, doc, err := c.share()
	if err != nil {
		return err
	}
	if c.target.snapshot == "" && c.r.Header.Get("x-ms-delete-snapshots") == "" && len(storage.Snapshots(doc)) > 0 {
		return refuse(http.StatusConflict, "ShareHasSnapshots", "The share has snapshots and the operation requires no snapshots.")
	}
	err = c.service.Azure.Do(func(w behaviour.World) error {
		if c.target.snapshot != "" {
			return storage.DeleteSnapshot(w, id, c.target.snapshot)
		}
		return w.Remove(id)
	})
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}

func (c *call) setShareMetadata() error {
	return c.updateShare(func(properties behaviour.Object) { properties["metadata"] = object(c.metadata()) })
}

func (c *call) setShareProperties() error {
	given, err := c.shareProperties()
	if err != nil {
		return err
	}
	return c.updateShare(func(properties behaviour.Object) {
		for name, value := range given {
			properties[name] = value
		}
	})
}

// updateShare changes properties of a share. What change leaves alone stays.
func (c *call) updateShare(change func(properties behaviour.Object)) error {
	err := c.service.Azure.Do(func(w behaviour.World) error {
		id := c.account.share(c.target.share)
		doc, there := w.Get(id)
		if !there {
			return notFound("ShareNotFound", "share")
		}
		properties := behaviour.Object{}
		if metadata := behaviour.Sub(doc, "properties.metadata"); metadata != nil {
			properties["metadata"] = behaviour.Clone(metadata)
		}
		change(properties)
		return w.Apply(id, behaviour.Object{"properties": properties})
	})
	if err != nil {
		return err
	}
	return c.answerShare(http.StatusOK)
}

func (c *call) snapshotShare() error {
	id, _, err := c.share()
	if err != nil {
		return err
	}
	var metadata behaviour.Object
	if given := c.metadata(); len(given) > 0 {
		metadata = object(given)
	}
	var at time.Time
	err = c.service.Azure.Do(func(w behaviour.World) error {
		at, err = storage.TakeSnapshot(w, id, metadata)
		return err
	})
	if err != nil {
		return err
	}
	o, err := c.open() // it copies the content before the answer
	if err != nil {
		return err
	}
	if err := o.root.Close(); err != nil {
		return err
	}
	c.w.Header().Set("x-ms-snapshot", behaviour.Timestamp(at))
	return c.answerShare(http.StatusCreated)
}

func (c *call) shareStats() error {
	_, doc, err := c.share()
	if err != nil {
		return err
	}
	usage, err := c.service.content.Usage(storage.Content(doc))
	if err != nil {
		return err
	}
	c.shareStamp(doc)
	c.xml(http.StatusOK, struct {
		XMLName         xml.Name `xml:"ShareStats"`
		ShareUsageBytes int64
	}{ShareUsageBytes: usage})
	return nil
}

func (c *call) undeleteShare() error {
	err := c.service.Azure.Do(func(w behaviour.World) error {
		_, err := w.Act(c.account.share(c.target.share), "restore", behaviour.Object{
			"deletedShareName":    c.r.Header.Get("x-ms-deleted-share-name"),
			"deletedShareVersion": c.r.Header.Get("x-ms-deleted-share-version"),
		})
		return err
	})
	if err != nil {
		return err
	}
	return c.answerShare(http.StatusCreated)
}

// listedShare is a share in a list.
type listedShare struct {
	Name       string
	Snapshot   string       `xml:",omitempty"`
	Deleted    bool         `xml:",omitempty"`
	Version    string       `xml:",omitempty"`
	Properties listedDetail `xml:"Properties"`
	Metadata   *listedMeta  `xml:",omitempty"`
}

type listedDetail struct {
	LastModified              string `xml:"Last-Modified"`
	Etag                      string
	Quota                     string
	AccessTier                string `xml:",omitempty"`
	EnabledProtocols          string
	RootSquash                string `xml:",omitempty"`
	ProvisionedIops           string `xml:",omitempty"`
	ProvisionedBandwidthMiBps string `xml:",omitempty"`
	LeaseStatus, LeaseState   string
	DeletedTime               string `xml:",omitempty"`
	RemainingRetentionDays    string `xml:",omitempty"`
}

// listedMeta is metadata with an element for each name.
type listedMeta struct{ values behaviour.Object }

// MarshalXML implements xml.Marshaler.
func (m listedMeta) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	if err := e.EncodeToken(start); err != nil {
		return err
	}
	for _, name := range sortedKeys(m.values) {
		if err := e.EncodeElement(text(m.values[name]), xml.StartElement{Name: xml.Name{Local: name}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(start.End())
}

func (c *call) listShares() error {
	include := strings.Split(strings.ToLower(c.query.Get("include")), ",")
	wants := func(what string) bool { return slices.Contains(include, what) }
	var expand []string
	for _, what := range []string{"snapshots", "deleted"} {
		if wants(what) {
			expand = append(expand, what)
		}
	}
	var docs []behaviour.Object
	c.service.Azure.Look(func(w behaviour.World) { docs = storage.ListShares(w, c.account.service(), expand) })
	var all []listedShare
	for _, doc := range docs {
		if strings.HasPrefix(behaviour.Text(doc, "name"), c.query.Get("prefix")) {
			all = append(all, listShare(doc, wants("metadata")))
		}
	}
	slices.SortStableFunc(all, func(a, b listedShare) int { return strings.Compare(a.Name, b.Name) })
	page, err := c.page(len(all), func(i int) string { return all[i].Name + "\x00" + all[i].Snapshot + "\x00" + all[i].Version })
	if err != nil {
		return err
	}
	c.xml(http.StatusOK, struct {
		XMLName         xml.Name `xml:"EnumerationResults"`
		ServiceEndpoint string   `xml:",attr"`
		Prefix          string   `xml:",omitempty"`
		Marker          string   `xml:",omitempty"`
		MaxResults      int      `xml:",omitempty"`
		Shares          struct {
			Share []listedShare
		}
		NextMarker string
	}{ServiceEndpoint: c.endpoint(), Prefix: c.query.Get("prefix"), Marker: c.query.Get("marker"), MaxResults: page.given,
		Shares: struct{ Share []listedShare }{all[page.from:page.to]}, NextMarker: page.next})
	return nil
}

func (c *call) endpoint() string { return "https://" + c.r.Host + "/" }

func listShare(doc behaviour.Object, metadata bool) listedShare {
	property := func(name string) string { return text(behaviour.At(doc, "properties."+name)) }
	one := listedShare{Name: behaviour.Text(doc, "name"), Snapshot: property("snapshotTime"), Version: property("version"),
		Deleted: property("deleted") == "true", Properties: listedDetail{
			LastModified: httpTime(property("lastModifiedTime")), Etag: behaviour.Text(doc, "etag"), Quota: property("shareQuota"),
			AccessTier: property("accessTier"), EnabledProtocols: property("enabledProtocols"), RootSquash: property("rootSquash"),
			ProvisionedIops: property("provisionedIops"), ProvisionedBandwidthMiBps: property("provisionedBandwidthMibps"),
			LeaseStatus: property("leaseStatus"), LeaseState: property("leaseState"), DeletedTime: httpTime(property("deletedTime")),
			RemainingRetentionDays: property("remainingRetentionDays"),
		}}
	if values := behaviour.Sub(doc, "properties.metadata"); metadata && values != nil {
		one.Metadata = &listedMeta{values}
	}
	return one
}

// getService answers with the settings of the file service.
func (c *call) getService() error {
	var doc behaviour.Object
	c.service.Azure.Look(func(w behaviour.World) { doc, _ = w.View(c.account.service()) })
	type enabled struct{ Enabled bool }
	c.xml(http.StatusOK, struct {
		XMLName          xml.Name `xml:"StorageServiceProperties"`
		Cors             struct{}
		ProtocolSettings struct {
			SMB struct{ Multichannel enabled }
		}
	}{ProtocolSettings: struct {
		SMB struct{ Multichannel enabled }
	}{struct{ Multichannel enabled }{enabled{behaviour.Bool(doc, "properties.protocolSettings.smb.multichannel.enabled")}}}})
	return nil
}
