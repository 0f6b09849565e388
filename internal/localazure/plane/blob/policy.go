package blob

import (
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
)

// access answers with the level of public access of a container and its stored access policies.
func (c containerCall) access() error {
	doc := c.containerHeaders()
	if level := accessOf(doc); level != "" {
		c.w.Header().Set(accessHeader, level)
	}
	account.ReplyPolicies(c.w, doc)
	return nil
}

// setAccess replaces the level of public access of a container and its stored access policies.
func (c containerCall) setAccess() error {
	level, known := accessLevels[strings.ToLower(c.r.Header.Get(accessHeader))]
	if !known {
		return account.InvalidHeader(accessHeader, c.r.Header.Get(accessHeader), "container or blob")
	}
	policies, err := account.GivenPolicies(c.w, c.r)
	if err != nil {
		return err
	}
	return c.changeContainer(func(w behaviour.World, properties behaviour.Object) error {
		properties["publicAccess"] = level
		w.Edit(c.container, func(doc behaviour.Object) { storage.SetPolicies(doc, policies) })
		return nil
	})
}
