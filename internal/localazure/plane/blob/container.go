package blob

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/behaviour/storage/lease"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/kept"
)

// accessLevels are the levels of public access as Azure Resource Manager spells them, by header.
var accessLevels = map[string]string{"": "None", "container": "Container", "blob": "Blob"}

const (
	accessHeader = "x-ms-blob-public-access"
)

func (c containerCall) createContainer() error {
	access, known := accessLevels[strings.ToLower(c.r.Header.Get(accessHeader))]
	if !known {
		return account.InvalidHeader(accessHeader, c.r.Header.Get(accessHeader), "container or blob")
	}
	metadata := c.containerMetadata()
	err := c.service.Azure.Do(func(w behaviour.World) error {
		if _, there := w.Get(c.container); there {
			return refuse(http.StatusConflict, "ContainerAlreadyExists", "The specified container already exists.")
		}
		return w.Apply(behaviour.Itself(), c.container,
			behaviour.Object{"properties": behaviour.Object{"publicAccess": access, "metadata": metadata}})
	})
	if err != nil {
		return err
	}
	c.containerHeaders()
	c.w.WriteHeader(http.StatusCreated)
	return nil
}

// containerMetadata returns the metadata in the headers of a request as documents have it.
func (c containerCall) containerMetadata() behaviour.Object {
	metadata := behaviour.Object{}
	for name, value := range account.PairsOf(account.Metadata(c.r.Header)) {
		metadata[name] = value
	}
	return metadata
}

// metadataIn returns the metadata of a container.
func metadataIn(doc behaviour.Object) account.Pairs {
	p := account.Pairs{}
	for name, value := range behaviour.Sub(doc, "properties.metadata") {
		p[name], _ = value.(string)
	}
	return p
}

// properties answers with the properties of a container.
func (c containerCall) properties() error {
	id, err := leaseID(c.r.Header, "x-ms-lease-id", false)
	if err != nil {
		return err
	}
	doc := c.containerHeaders()
	held := storage.LeaseOf(doc)
	if err := held.Check(lease.Container, id, false, c.now); err != nil {
		return err
	}
	header := c.w.Header()
	if access := accessOf(doc); access != "" {
		header.Set(accessHeader, access)
	}
	metadataIn(doc).Show(header)
	for name, property := range map[string]string{"x-ms-has-legal-hold": "hasLegalHold",
		"x-ms-has-immutability-policy": "hasImmutabilityPolicy"} {
		header.Set(name, strconv.FormatBool(behaviour.Bool(doc, "properties."+property)))
	}
	showLease(header, held, c.now)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// containerHeaders writes the headers that all replies about a container have, and returns its document.
func (c containerCall) containerHeaders() (doc behaviour.Object) {
	c.service.Azure.Look(func(w behaviour.World) { doc, _ = w.Get(c.container) })
	c.w.Header().Set("ETag", behaviour.Text(doc, "etag"))
	if modified := modifiedOf(doc); modified != "" {
		c.w.Header().Set("Last-Modified", modified)
	}
	return doc
}

// accessOf returns the level of public access of a container as headers spell it, "" for none.
func accessOf(doc behaviour.Object) string {
	for level, name := range accessLevels {
		if level != "" && name == behaviour.Text(doc, "properties.publicAccess") {
			return level
		}
	}
	return ""
}

// modifiedOf returns when a container was changed as headers have it, "" if that is not known.
func modifiedOf(doc behaviour.Object) string {
	at, err := time.Parse(time.RFC3339, behaviour.Text(doc, "properties.lastModifiedTime"))
	if err != nil {
		return ""
	}
	return at.UTC().Format(http.TimeFormat)
}

// setContainerMetadata replaces the metadata of a container.
func (c containerCall) setContainerMetadata() error {
	return c.changeContainer(func(_ behaviour.World, properties behaviour.Object) error {
		properties["metadata"] = c.containerMetadata()
		return nil
	})
}

// changeContainer changes properties of a container, and answers.
func (c containerCall) changeContainer(change func(w behaviour.World, properties behaviour.Object) error) error {
	err := c.service.Azure.Do(func(w behaviour.World) error {
		doc, err := c.changeable(w, false)
		if err != nil {
			return err
		}
		properties := behaviour.Object{"publicAccess": behaviour.Text(doc, "properties.publicAccess"),
			"metadata": behaviour.Clone(behaviour.Sub(doc, "properties.metadata"))}
		if err := change(w, properties); err != nil {
			return err
		}
		return w.Apply(behaviour.Itself(), c.container, behaviour.Object{"properties": properties})
	})
	if err != nil {
		return err
	}
	c.containerHeaders()
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// changeable returns the document of a container, or why the request must not change it. A write, such as a deletion, needs its lease.
func (c containerCall) changeable(w behaviour.World, write bool) (behaviour.Object, error) {
	id, err := leaseID(c.r.Header, "x-ms-lease-id", false)
	if err != nil {
		return nil, err
	}
	doc, there := w.Get(c.container)
	if !there {
		return nil, noContainer()
	}
	if err := storage.LeaseOf(doc).Check(lease.Container, id, write, c.now); err != nil {
		return nil, err
	}
	return doc, c.checkTimes(doc)
}

// checkTimes returns why the request must not be carried out on a container as it is. Containers have the conditions on times alone.
func (c containerCall) checkTimes(doc behaviour.Object) error {
	at, err := time.Parse(time.RFC3339, behaviour.Text(doc, "properties.lastModifiedTime"))
	if err != nil {
		return nil // it is of an older kaz
	}
	given := http.Header{}
	for _, name := range []string{"If-Modified-Since", "If-Unmodified-Since"} {
		if value := c.r.Header.Get(name); value != "" {
			given.Set(name, value)
		}
	}
	met, changed, err := meets(kept.Blob{Facts: kept.Facts{Modified: at}}, given, "", true)
	if err == nil && (!met || !changed) {
		err = unmet()
	}
	return err
}

// deleteContainer deletes a container with its blobs. Leases of blobs do not prevent that.
func (c containerCall) deleteContainer() error {
	err := c.service.Azure.Do(func(w behaviour.World) error {
		if _, err := c.changeable(w, true); err != nil {
			return err
		}
		w.Edit(c.container, func(doc behaviour.Object) { storage.SetLease(doc, lease.Lease{}) })
		return w.Remove(behaviour.Itself(), c.container)
	})
	if err != nil {
		return err
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	if err := c.service.kept.ForgetUnder(c.container.Key() + "/"); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}
