package blob

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
)

// listedContainers is a page of a list of containers.
type listedContainers struct {
	XMLName    xml.Name         `xml:"EnumerationResults"`
	Service    string           `xml:"ServiceEndpoint,attr"`
	Prefix     string           `xml:"Prefix,omitempty"`
	Marker     string           `xml:"Marker,omitempty"`
	Most       int              `xml:"MaxResults,omitempty"`
	Containers []containerEntry `xml:"Containers>Container"`
	Next       string           `xml:"NextMarker"`
}

type containerEntry struct {
	Name          string        `xml:"Name"`
	Modified      string        `xml:"Properties>Last-Modified"`
	ETag          string        `xml:"Properties>Etag"`
	LeaseStatus   string        `xml:"Properties>LeaseStatus"`
	LeaseState    string        `xml:"Properties>LeaseState"`
	LeaseDuration string        `xml:"Properties>LeaseDuration,omitempty"`
	Access        string        `xml:"Properties>PublicAccess,omitempty"`
	Scope         string        `xml:"Properties>DefaultEncryptionScope"`
	OwnScope      bool          `xml:"Properties>DenyEncryptionScopeOverride"`
	Immutable     bool          `xml:"Properties>HasImmutabilityPolicy"`
	Hold          bool          `xml:"Properties>HasLegalHold"`
	Metadata      account.Pairs `xml:"Metadata,omitempty"`
}

// listContainers answers a request for the containers of an account in the order of their names. A marker is the first name of a page.
func (c serviceCall) listContainers() error {
	most, err := account.PageSize(c.query)
	if err != nil {
		return err
	}
	include, err := account.Included(c.query, "metadata", "deleted", "system")
	if err != nil {
		return err
	}
	page := listedContainers{Service: account.Base(c.r, "https"), Prefix: c.query.Get("prefix"), Marker: c.query.Get("marker")}
	if c.query.Get("maxresults") != "" {
		page.Most = most
	}
	documents := map[string]behaviour.Object{}
	c.service.Azure.Look(func(w behaviour.World) {
		for id, doc := range w.List(c.container, storage.ContainerType) {
			documents[id.Name()] = doc
		}
	})
	names, next := account.PageOf(documents, page.Prefix, page.Marker, most)
	page.Next = next
	for _, name := range names {
		page.Containers = append(page.Containers, c.containerEntry(name, documents[name], include["metadata"]))
	}
	account.Reply(c.w, http.StatusOK, page)
	return nil
}

func (c serviceCall) containerEntry(name string, doc behaviour.Object, metadata bool) containerEntry {
	held := storage.LeaseOf(doc)
	e := containerEntry{Name: name, ETag: strings.Trim(behaviour.Text(doc, "etag"), `"`), LeaseStatus: held.Status(c.now),
		LeaseState: string(held.State(c.now)), LeaseDuration: held.Duration(c.now), Access: accessOf(doc),
		Scope: "$account-encryption-key", Immutable: behaviour.Bool(doc, "properties.hasImmutabilityPolicy"),
		Hold: behaviour.Bool(doc, "properties.hasLegalHold"), Modified: modifiedOf(doc)}
	if metadata {
		e.Metadata = metadataIn(doc)
	}
	return e
}

// describeAccount answers with the kind of the account, as clients ask that copy many blobs.
func (c serviceCall) describeAccount() error {
	var doc behaviour.Object
	c.service.Azure.Look(func(w behaviour.World) { doc, _ = w.Get(c.container.TopLevel()) })
	header := c.w.Header()
	header.Set("x-ms-sku-name", behaviour.Text(doc, "sku.name"))
	header.Set("x-ms-account-kind", behaviour.Text(doc, "kind"))
	header.Set("x-ms-is-hns-enabled", strconv.FormatBool(behaviour.Bool(doc, "properties.isHnsEnabled")))
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// serviceFacts are the settings of the service of an account.
type serviceFacts struct {
	account.Settings
	// Retention and Website are off here, and requests cannot change that.
	Retention *enabled `xml:"DeleteRetentionPolicy"`
	Website   *enabled `xml:"StaticWebsite"`
}

type enabled struct {
	Enabled bool
	Days    int `xml:",omitempty"`
}

// serviceProperties answers with the settings of the service.
func (c serviceCall) serviceProperties() (err error) {
	var doc behaviour.Object
	c.service.Azure.Look(func(w behaviour.World) { doc, _ = w.Get(c.container) })
	all := serviceFacts{Retention: &enabled{}, Website: &enabled{}}
	if all.Settings, err = account.SettingsOf(doc); err != nil {
		return err
	}
	all.Retention.Enabled = behaviour.Bool(doc, "properties.deleteRetentionPolicy.enabled")
	all.Retention.Days, _ = behaviour.Int(doc, "properties.deleteRetentionPolicy.days")
	account.Reply(c.w, http.StatusOK, all)
	return nil
}

// setServiceProperties changes the settings of the service that the request has.
func (c serviceCall) setServiceProperties() error {
	var given serviceFacts
	if err := account.ReadSettings(c.w, c.r, &given); err != nil {
		return err
	}
	for name, policy := range map[string]*enabled{"DeleteRetentionPolicy": given.Retention, "StaticWebsite": given.Website} {
		if policy != nil && policy.Enabled {
			return refuse(http.StatusNotImplemented, "NotImplemented", "The local Azure does not serve %s.", name)
		}
	}
	if err := given.Keep(c.service.Azure, c.container); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}

// statistics answers with how far the other region of the account is behind.
func (c serviceCall) statistics() error { return account.ReplyStatistics(c.w, c.secondary, c.now) }
