package file

import (
	"encoding/xml"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
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

// sharePropertiesOf returns the properties that a request gives.
func sharePropertiesOf(given http.Header) (behaviour.Object, error) {
	properties := behaviour.Object{}
	for _, p := range shareHeaders {
		text := given.Get(p.header)
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

func object(metadata map[string]string) behaviour.Object {
	all := behaviour.Object{}
	for name, value := range metadata {
		all[name] = value
	}
	return all
}

// shareCall is a request about a share.
type shareCall struct{ *call }

func (c shareCall) create() error {
	properties, err := sharePropertiesOf(c.r.Header)
	if err != nil {
		return err
	}
	if metadata := metadataOf(c.r.Header); len(metadata) > 0 {
		properties["metadata"] = object(metadata)
	}
	id := c.account.share(c.target.share)
	err = c.service.Azure.Do(func(w behaviour.World) error {
		if _, there := w.Get(id); there {
			return refuse(http.StatusConflict, "ShareAlreadyExists", "The specified share already exists.")
		}
		return w.Apply(behaviour.Itself(), id, behaviour.Object{"properties": properties})
	})
	if err != nil {
		return err
	}
	return c.answerShare(http.StatusCreated)
}

// answerShare answers with the headers of the share after a change.
func (c shareCall) answerShare(status int) error {
	_, doc, err := c.share()
	if err != nil {
		return err
	}
	c.shareStamp(doc)
	c.w.WriteHeader(status)
	return nil
}

// httpTime converts a time of a document to the form of headers.
func httpTime(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return ""
	}
	return at.UTC().Format(http.TimeFormat)
}

func (c shareCall) get() error {
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

// delete deletes a share or a snapshot. Unlike Azure Resource Manager it refuses to delete a share with snapshots, unless the
// request includes them.
func (c shareCall) delete() error {
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
		return w.Remove(behaviour.Itself(), id)
	})
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}

func (c shareCall) setMetadata() error {
	return c.update(func(properties behaviour.Object) { properties["metadata"] = object(metadataOf(c.r.Header)) })
}

func (c shareCall) setProperties() error {
	given, err := sharePropertiesOf(c.r.Header)
	if err != nil {
		return err
	}
	return c.update(func(properties behaviour.Object) { maps.Copy(properties, given) })
}

// update changes properties of a share. What change leaves alone stays.
func (c shareCall) update(change func(properties behaviour.Object)) error {
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
		return w.Apply(behaviour.Itself(), id, behaviour.Object{"properties": properties})
	})
	if err != nil {
		return err
	}
	return c.answerShare(http.StatusOK)
}

func (c shareCall) snapshot() error {
	id, _, err := c.share()
	if err != nil {
		return err
	}
	var metadata behaviour.Object
	if given := metadataOf(c.r.Header); len(given) > 0 {
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

func (c shareCall) stats() error {
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

func (c shareCall) undelete() error {
	err := c.service.Azure.Do(func(w behaviour.World) error {
		_, err := w.Act(behaviour.Itself(), c.account.share(c.target.share), "restore", behaviour.Object{
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
