package file

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
)

// serviceCall is a request about the file service of an account.
type serviceCall struct{ *call }

// properties answers with the settings of the file service.
func (c serviceCall) properties() error {
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

func (c serviceCall) listShares() error {
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
	page, err := pageOf(c.query, len(all), func(i int) string { return all[i].Name + "\x00" + all[i].Snapshot + "\x00" + all[i].Version })
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
