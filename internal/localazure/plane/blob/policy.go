package blob

import (
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
)

// policyList is the list of the stored access policies of a container.
type policyList struct {
	XMLName  xml.Name         `xml:"SignedIdentifiers"`
	Policies []storage.Policy `xml:"SignedIdentifier"`
}

// access answers with the level of public access of a container and its stored access policies.
func (c containerCall) access() error {
	doc := c.containerHeaders()
	if level := accessOf(doc); level != "" {
		c.w.Header().Set(accessHeader, level)
	}
	reply(c.w, http.StatusOK, policyList{Policies: storage.Policies(doc)})
	return nil
}

// setAccess replaces the level of public access of a container and its stored access policies.
func (c containerCall) setAccess() error {
	level, known := accessLevels[strings.ToLower(c.r.Header.Get(accessHeader))]
	if !known {
		return invalidHeader(accessHeader, c.r.Header.Get(accessHeader), "container or blob")
	}
	policies, err := c.givenPolicies()
	if err != nil {
		return err
	}
	return c.changeContainer(func(w behaviour.World, properties behaviour.Object) error {
		properties["publicAccess"] = level
		w.Edit(c.container, func(doc behaviour.Object) { storage.SetPolicies(doc, policies) })
		return nil
	})
}

// givenPolicies reads the stored access policies of a request.
func (c containerCall) givenPolicies() ([]storage.Policy, error) {
	const mostBytes, most, longest = 64 << 10, 5, 64
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, mostBytes))
	if err != nil {
		return nil, refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "%v", err)
	}
	if len(text) == 0 {
		return nil, nil
	}
	var list policyList
	if err := xml.Unmarshal(text, &list); err != nil {
		return nil, invalidDocument(err)
	}
	if len(list.Policies) > most {
		return nil, refuse(http.StatusBadRequest, "InvalidXmlDocument",
			"XML specified is not valid: it has %d policies, at most %d are allowed.", len(list.Policies), most)
	}
	for _, p := range list.Policies {
		if len(p.ID) == 0 || len(p.ID) > longest {
			return nil, refuse(http.StatusBadRequest, "InvalidXmlDocument",
				"XML specified is not valid: the id %q has %d characters, 1 to %d are allowed.", p.ID, len(p.ID), longest)
		}
	}
	return list.Policies, nil
}

// withPolicy returns the parameters of a signature with what the stored access policy that it names has.
func withPolicy(container behaviour.Object, v url.Values) (url.Values, error) {
	id := v.Get("si")
	if id == "" {
		return v, nil
	}
	for _, p := range storage.Policies(container) {
		if p.ID != id {
			continue
		}
		merged := maps.Clone(v)
		for name, value := range map[string]string{"st": p.Start, "se": p.Expiry, "sp": p.Permission} {
			if merged.Get(name) == "" && value != "" {
				merged.Set(name, value)
			}
		}
		return merged, nil
	}
	return nil, unsigned("Access policy not found.")
}
