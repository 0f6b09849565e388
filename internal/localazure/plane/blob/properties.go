package blob

import (
	"cmp"
	"net/http"

	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/kept"
)

// contentHeader is a property: the header that sets it, and whether a write of a whole blob takes the header of the reply, too.
type contentHeader struct {
	sent     string
	standard bool
}

var contentHeaders = map[string]contentHeader{
	"Cache-Control":       {"x-ms-blob-cache-control", true},
	"Content-Disposition": {"x-ms-blob-content-disposition", false},
	"Content-Encoding":    {"x-ms-blob-content-encoding", true},
	"Content-Language":    {"x-ms-blob-content-language", true},
	"Content-MD5":         {"x-ms-blob-content-md5", false},
	"Content-Type":        {"x-ms-blob-content-type", true},
}

const contentType = "Content-Type"

// anyContent is the type of a content of which the client says nothing.
const anyContent = "application/octet-stream"

// propertiesOf returns the properties in the headers of a request. That of a whole blob may have them as standard headers.
func propertiesOf(given http.Header, whole bool) kept.Properties {
	p := kept.Properties{}
	for name, h := range contentHeaders {
		value := given.Get(h.sent)
		if value == "" && whole && h.standard {
			value = given.Get(name)
		}
		if value != "" {
			p[name] = value
		}
	}
	return p
}

// orAny gives properties without a type that of any content.
func orAny(p kept.Properties) kept.Properties {
	p[contentType] = cmp.Or(p[contentType], anyContent)
	return p
}

// overrides are the headers that a signature sets in the reply, by its parameters.
var overrides = map[string]string{
	"rscc": "Cache-Control", "rscd": "Content-Disposition", "rsce": "Content-Encoding", "rscl": "Content-Language", "rsct": contentType,
}

// setProperties replaces the properties of a blob. What the request does not name is unset.
func (c blobCall) setProperties() error {
	return c.change(http.StatusOK, func(b *kept.Blob) error {
		b.Properties = propertiesOf(c.r.Header, false) // without a type, too
		return nil
	})
}

// setMetadata replaces the metadata of a blob.
func (c blobCall) setMetadata() error {
	return c.change(http.StatusOK, func(b *kept.Blob) error {
		b.Metadata = account.Metadata(c.r.Header)
		return nil
	})
}

// metadata answers with the metadata of a blob alone.
func (c blobCall) metadata() error {
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	b, err := c.find(reads)
	if err != nil {
		return err
	}
	stamp(c.w, b)
	account.PairsOf(b.Metadata).Show(c.w.Header())
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// tiers are the access tiers of block blobs.
var tiers = map[string]bool{"Hot": true, "Cool": true, "Cold": true, "Archive": true}

// tierOf returns the tier in the headers of a request, "" for that of the account.
func tierOf(given http.Header, required bool) (string, error) {
	const header = "x-ms-access-tier"
	tier := given.Get(header)
	switch {
	case tier == "" && required:
		return "", account.MissingHeader(header)
	case tier != "" && !tiers[tier]:
		return "", account.InvalidHeader(header, tier, "Hot, Cool, Cold or Archive")
	}
	return tier, nil
}

// setTier moves a blob to another tier, which leaves its etag as it is. One in the archive stays there: Azure takes hours to bring it
// back, here it never arrives.
func (c blobCall) setTier() error {
	tier, err := tierOf(c.r.Header, true)
	if err != nil {
		return err
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	b, err := c.find(leases)
	if err == nil && b.Type != kept.Blocks {
		err = wrongType()
	}
	if err != nil {
		return err
	}
	status := http.StatusOK
	if b.Tier == kept.Archived && tier != kept.Archived {
		if c.snapshot != "" {
			return refuse(http.StatusConflict, "BlobArchived",
				"This operation is not permitted on an archived blob: a snapshot does not return.")
		}
		if b.Returns != "" && b.Returns != tier {
			return refuse(http.StatusConflict, "BlobBeingRehydrated",
				"This operation is not permitted because the blob is being rehydrated.")
		}
		status, b.Returns = http.StatusAccepted, tier
	} else {
		b.Tier, b.TierSet = tier, c.now.UTC()
	}
	if err := c.service.kept.Keep(c.key(), b); err != nil {
		return err
	}
	c.w.WriteHeader(status)
	return nil
}

// describe writes what a reader gets of a blob besides its content.
func (c *call) describe(b kept.Blob) {
	stamp(c.w, b)
	header := c.w.Header()
	header.Set("Accept-Ranges", "bytes")
	header.Set("x-ms-blob-type", b.Type)
	header.Set("x-ms-creation-time", b.Created.Format(http.TimeFormat))
	header.Set("x-ms-server-encrypted", "true")
	showLease(header, b.Lease, c.now)
	header[contentType] = nil // nothing is to guess it
	for name, value := range b.Properties {
		header.Set(name, value)
	}
	account.PairsOf(b.Metadata).Show(header)
	for parameter, name := range overrides {
		if value := c.query.Get(parameter); value != "" && c.query.Get("sig") != "" {
			header.Set(name, value)
		}
	}
	if b.Type == kept.Appended {
		header.Set("x-ms-blob-committed-block-count", formatInt(b.Appends))
	}
	if b.Sealed {
		header.Set("x-ms-blob-sealed", "true")
	}
	if b.Type == kept.Blocks {
		header.Set("x-ms-access-tier", cmp.Or(b.Tier, "Hot"))
		if b.Tier == "" {
			header.Set("x-ms-access-tier-inferred", "true")
		} else {
			header.Set("x-ms-access-tier-change-time", b.TierSet.Format(http.TimeFormat))
		}
		if pending := b.Pending(); pending != "" {
			header.Set("x-ms-archive-status", pending)
		}
	}
	if len(b.Tags) > 0 {
		header.Set("x-ms-tag-count", formatInt(len(b.Tags)))
	}
	b.Copy.Show(header)
}

// seal ends an append blob: it takes no more blocks.
func (c blobCall) seal() error {
	return c.change(http.StatusOK, func(b *kept.Blob) error {
		if b.Type != kept.Appended {
			return wrongType()
		}
		b.Sealed = true
		c.w.Header().Set("x-ms-blob-sealed", "true")
		return nil
	})
}
