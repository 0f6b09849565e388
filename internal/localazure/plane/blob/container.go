package blob

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/behaviour/storage/lease"
)

// accessLevels are the levels of public access as Azure Resource Manager spells them, by header.
var accessLevels = map[string]string{"": "None", "container": "Container", "blob": "Blob"}

const (
	accessHeader   = "x-ms-blob-public-access"
	metadataHeader = "x-ms-meta-"
)

func (c *call) createContainer() error {
	access, known := accessLevels[strings.ToLower(c.r.Header.Get(accessHeader))]
	if !known {
		return invalidHeader(accessHeader, c.r.Header.Get(accessHeader), "container or blob")
	}
	metadata := behaviour.Object{}
	for header, value := range metadataOf(c.r.Header) {
		metadata[strings.ToLower(header[len(metadataHeader):])] = value
	}
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

// properties answers with the properties of a container.
func (c *call) properties() error {
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
	for level, name := range accessLevels {
		if level != "" && name == behaviour.Text(doc, "properties.publicAccess") {
			header.Set(accessHeader, level)
		}
	}
	for name, value := range behaviour.Sub(doc, "properties.metadata") {
		text, _ := value.(string)
		header.Set(metadataHeader+name, text)
	}
	for name, property := range map[string]string{"x-ms-has-legal-hold": "hasLegalHold",
		"x-ms-has-immutability-policy": "hasImmutabilityPolicy"} {
		header.Set(name, strconv.FormatBool(behaviour.Bool(doc, "properties."+property)))
	}
	showLease(header, held, c.now)
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// containerHeaders writes the headers that all replies about a container have, and returns its document.
func (c *call) containerHeaders() (doc behaviour.Object) {
	c.service.Azure.Look(func(w behaviour.World) { doc, _ = w.Get(c.container) })
	c.w.Header().Set("ETag", behaviour.Text(doc, "etag"))
	if at, err := time.Parse(time.RFC3339, behaviour.Text(doc, "properties.lastModifiedTime")); err == nil {
		c.w.Header().Set("Last-Modified", at.UTC().Format(http.TimeFormat))
	}
	return doc
}

// deleteContainer deletes a container with its blobs. Leases of blobs do not prevent that.
func (c *call) deleteContainer() error {
	id, err := leaseID(c.r.Header, "x-ms-lease-id", false)
	if err != nil {
		return err
	}
	err = c.service.Azure.Do(func(w behaviour.World) error {
		doc, there := w.Get(c.container)
		if !there {
			return noContainer()
		}
		if err := storage.LeaseOf(doc).Check(lease.Container, id, true, c.now); err != nil {
			return err
		}
		w.Edit(c.container, func(doc behaviour.Object) { storage.SetLease(doc, lease.Lease{}) })
		return w.Remove(behaviour.Itself(), c.container)
	})
	if err != nil {
		return err
	}
	c.service.mu.Lock()
	defer c.service.mu.Unlock()
	for key := range c.service.blobs {
		if strings.HasPrefix(key, c.container.Key()+"/") {
			err = errors.Join(err, c.service.forget(key))
		}
	}
	if err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}
