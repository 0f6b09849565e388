package blob

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/blob/kept"
	"kaz/internal/localazure/plane/blob/tags"
)

// checkTagCondition returns why the request must not be carried out on a blob with its tags.
func (c *call) checkTagCondition(b kept.Blob, there bool) error {
	const header = "x-ms-if-tags"
	text := c.r.Header.Get(header)
	if text == "" {
		return nil
	}
	f, err := tags.Parse(text)
	switch {
	case err != nil:
		return account.InvalidHeader(header, text, "conditions on tags: "+err.Error())
	case !there || !f.Matches(b.Tags, c.container.Name()):
		return unmet()
	}
	return nil
}

// foundBlobs is a page of blobs that have tags.
type foundBlobs struct {
	XMLName xml.Name    `xml:"EnumerationResults"`
	Service string      `xml:"ServiceEndpoint,attr"`
	Where   string      `xml:"Where"`
	Blobs   []foundBlob `xml:"Blobs>Blob"`
	Next    string      `xml:"NextMarker"`
}

type foundBlob struct {
	Name      string `xml:"Name"`
	Container string `xml:"ContainerName"`
	Tags      *tags.List
}

// search answers with the blobs of a container or an account that have tags, with the tags that the search names.
func (c serviceCall) search() error {
	where := c.query.Get("where")
	f, err := tags.Parse(where)
	if err != nil || len(f) > 1 {
		return account.InvalidParameter("where", where, "conditions such as \"key\"='value' with AND between them")
	}
	most, err := account.PageSize(c.query)
	if err != nil {
		return err
	}
	first, err := parseMarker(c.query.Get("marker"))
	if err != nil {
		return err
	}
	page := foundBlobs{Service: account.Base(c.r, "https"), Where: where}
	for _, b := range c.tagged(f) {
		// The marker has the container, too: the names of containers have no slash.
		at := kept.Version{Name: b.Container + "/" + b.Name}
		if at.Compare(first) < 0 {
			continue
		}
		if len(page.Blobs) == most {
			page.Next = marker(at)
			break
		}
		page.Blobs = append(page.Blobs, b)
	}
	account.Reply(c.w, http.StatusOK, page)
	return nil
}

// tagged returns the blobs that a search finds in the container or the account, in order.
func (c serviceCall) tagged(f tags.Filter) (all []foundBlob) {
	containers := map[string]string{} // when they were made, by what the keys of their blobs begin with
	c.service.Azure.Look(func(w behaviour.World) {
		if c.container.Is(storage.ContainerType) {
			containers[c.container.Key()+"/"] = c.made
			return
		}
		for id, doc := range w.List(c.container, storage.ContainerType) {
			containers[id.Key()+"/"] = storage.MadeAt(doc)
		}
	})
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	for before, made := range containers {
		container := azure.ID(strings.TrimSuffix(before, "/")).Name()
		for v, b := range c.service.kept.Under(before) {
			if b.Made == made && v.Snapshot == "" && f.Matches(b.Tags, container) {
				all = append(all, foundBlob{v.Name, container, tags.ListOf(f.Named(b.Tags))})
			}
		}
	}
	slices.SortFunc(all, func(a, b foundBlob) int { return strings.Compare(a.Container+"/"+a.Name, b.Container+"/"+b.Name) })
	return all
}
