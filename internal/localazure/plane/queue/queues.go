package queue

import (
	"encoding/xml"
	"maps"
	"net/http"
	"strconv"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
)

// listed is a page of a list of queues.
type listed struct {
	XMLName xml.Name `xml:"EnumerationResults"`
	Service string   `xml:"ServiceEndpoint,attr"`
	Prefix  string   `xml:"Prefix,omitempty"`
	Marker  string   `xml:"Marker,omitempty"`
	Most    int      `xml:"MaxResults,omitempty"`
	Queues  []entry  `xml:"Queues>Queue"`
	Next    string   `xml:"NextMarker"`
}

type entry struct {
	Name     string        `xml:"Name"`
	Metadata account.Pairs `xml:"Metadata,omitempty"`
}

// listQueues answers with the queues of an account in the order of their names. A marker is the first name of a page.
func (c *call) listQueues() error {
	most, err := account.PageSize(c.query)
	if err != nil {
		return err
	}
	include, err := account.Included(c.query, "metadata")
	if err != nil {
		return err
	}
	page := listed{Service: account.Base(c.r, "https"), Prefix: c.query.Get("prefix"), Marker: c.query.Get("marker")}
	if c.query.Get("maxresults") != "" {
		page.Most = most
	}
	all := map[string]account.Pairs{}
	c.service.Azure.Look(func(w behaviour.World) {
		for id, doc := range w.List(c.id, storage.QueueType) {
			all[id.Name()] = metadataIn(doc)
		}
	})
	names, next := account.PageOf(all, page.Prefix, page.Marker, most)
	page.Next = next
	for _, name := range names {
		e := entry{Name: name}
		if include["metadata"] {
			e.Metadata = all[name]
		}
		page.Queues = append(page.Queues, e)
	}
	account.Reply(c.w, http.StatusOK, page)
	return nil
}

// metadataIn returns the metadata of a queue.
func metadataIn(doc behaviour.Object) account.Pairs {
	p := account.Pairs{}
	for name, value := range behaviour.Sub(doc, "properties.metadata") {
		p[name], _ = value.(string)
	}
	return p
}

// given returns the metadata in the headers of the request as documents have it.
func (c *call) given() behaviour.Object {
	metadata := behaviour.Object{}
	for name, value := range account.PairsOf(account.Metadata(c.r.Header)) {
		metadata[name] = value
	}
	return metadata
}

// create makes a queue. One with the same metadata may exist.
func (c *call) create() error {
	metadata, status := c.given(), http.StatusCreated
	err := c.service.Azure.Do(func(w behaviour.World) error {
		if doc, there := w.Get(c.id); there {
			if !maps.Equal(metadataIn(doc), metadataIn(behaviour.Object{"properties": behaviour.Object{"metadata": metadata}})) {
				return behaviour.Refusal(http.StatusConflict, "QueueAlreadyExists", "The specified queue already exists.")
			}
			status = http.StatusNoContent
			return nil
		}
		return w.Apply(behaviour.Itself(), c.id, behaviour.Object{"properties": behaviour.Object{"metadata": metadata}})
	})
	if err == nil {
		c.w.WriteHeader(status)
	}
	return err
}

// delete deletes a queue with its messages.
func (c *call) delete() error {
	err := c.service.Azure.Do(func(w behaviour.World) error {
		if _, there := w.Get(c.id); !there {
			return noQueue()
		}
		return w.Remove(behaviour.Itself(), c.id)
	})
	if err != nil {
		return err
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	if err := c.service.kept.Drop(c.id.Key()); err != nil {
		return err
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// metadata answers with the metadata of a queue and the number of its messages.
func (c *call) metadata() error {
	var doc behaviour.Object
	c.service.Azure.Look(func(w behaviour.World) { doc, _ = w.Get(c.id) })
	metadataIn(doc).Show(c.w.Header())
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	c.w.Header().Set("x-ms-approximate-messages-count", strconv.Itoa(len(c.service.kept.Live(c.id.Key(), c.made, c.now))))
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// setMetadata replaces the metadata of a queue.
func (c *call) setMetadata() error {
	return c.edit(func(doc behaviour.Object) { behaviour.Set(doc, "properties.metadata", c.given()) })
}

// policies answers with the stored access policies of a queue.
func (c *call) policies() error {
	var doc behaviour.Object
	c.service.Azure.Look(func(w behaviour.World) { doc, _ = w.Get(c.id) })
	account.ReplyPolicies(c.w, doc)
	return nil
}

// setPolicies replaces the stored access policies of a queue.
func (c *call) setPolicies() error {
	policies, err := account.GivenPolicies(c.w, c.r)
	if err != nil {
		return err
	}
	return c.edit(func(doc behaviour.Object) { storage.SetPolicies(doc, policies) })
}

// edit changes the document of a queue.
func (c *call) edit(f func(doc behaviour.Object)) error {
	err := c.service.Azure.Do(func(w behaviour.World) error {
		if _, there := w.Get(c.id); !there {
			return noQueue()
		}
		w.Edit(c.id, f)
		return nil
	})
	if err == nil {
		c.w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// settings answers with the settings of the service.
func (c *call) settings() error { return account.ReplySettings(c.w, c.service.Azure, c.id) }

// setSettings changes the settings of the service that the request has.
func (c *call) setSettings() error { return account.ChangeSettings(c.w, c.r, c.service.Azure, c.id) }

// statistics answers with how far the other region of the account is behind.
func (c *call) statistics() error { return account.ReplyStatistics(c.w, c.secondary, c.now) }
