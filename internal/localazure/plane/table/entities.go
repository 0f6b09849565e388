package table

import (
	"net/http"
	"strings"

	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/table/entity"
	"kaz/internal/localazure/plane/table/kept"
	"kaz/internal/localazure/plane/table/odata"
)

// insert adds an entity that must be new.
func (c *call) insert(w *kept.Writes) error {
	e, err := c.entity(nil)
	if err != nil {
		return err
	}
	if _, there := w.Get(e.Key); there {
		return refuse(http.StatusConflict, "EntityAlreadyExists", "The specified entity already exists.")
	}
	e = w.Put(e, c.now)
	url := c.place.Base + c.place.Path(e.Key)
	c.out.header.Set("ETag", e.ETag())
	c.out.header.Set("Location", url)
	if !c.echoes() {
		c.out.header.Set("DataServiceId", url)
		c.done()
		return nil
	}
	c.reply(http.StatusCreated, c.show(e, nil))
	return nil
}

// entity reads the entity of a request. Its key is in the URL, or in the body.
func (c *call) entity(at *entity.Key) (e entity.Entity, err error) {
	if c.given != nil {
		return *c.given, nil
	}
	if at != nil {
		if err := at.Check(); err != nil {
			return e, err
		}
	}
	text, err := c.object()
	if err != nil {
		return e, err
	}
	if e, err = entity.Parse(text, at); err != nil {
		return e, err
	}
	return e, c.grant.within.check(e.Key)
}

func (c *call) show(e entity.Entity, chosen []string) *odata.Object {
	o := c.described(c.place.Table + "/@Element")
	c.place.Write(o, c.level, e, chosen)
	return o
}

// getEntity answers with an entity.
func (c *call) getEntity() error {
	if err := c.grant.within.check(c.path.key); err != nil {
		return err
	}
	s := &c.service.kept
	s.Lock()
	e, there := s.Begin(c.table).Get(c.path.key)
	s.Unlock()
	if !there {
		return noResource()
	}
	c.out.header.Set("ETag", e.ETag())
	c.reply(http.StatusOK, c.show(e, c.chosen()))
	return nil
}

// chosen returns the properties that a request wants, nil for all.
func (c *call) chosen() (names []string) {
	for name := range strings.SplitSeq(c.query.Get("$select"), ",") {
		switch name = strings.TrimSpace(name); name {
		case "*":
			return nil
		case "":
		default:
			names = append(names, name)
		}
	}
	return names
}

// upsert writes an entity that may be there: as a whole, or into the one that is there.
func (c *call) upsert(w *kept.Writes) error {
	e, err := c.entity(&c.path.key)
	if err != nil {
		return err
	}
	return c.write(w, e)
}

// update writes an entity that must be there, with an etag that the request names.
func (c *call) update(w *kept.Writes) error {
	if err := c.match(w); err != nil {
		return err
	}
	return c.upsert(w)
}

func (c *call) write(w *kept.Writes, e entity.Entity) error {
	if old, there := w.Get(e.Key); there && c.method == merge {
		e = old.Merge(e)
		if err := e.Check(); err != nil {
			return err
		}
	}
	e = w.Put(e, c.now)
	c.out.header.Set("ETag", e.ETag())
	c.done()
	return nil
}

// delete deletes an entity with an etag that the request names.
func (c *call) delete(w *kept.Writes) error {
	if c.r.Header.Get("If-Match") == "" {
		return account.MissingHeader("If-Match")
	}
	if err := c.grant.within.check(c.path.key); err != nil {
		return err
	}
	if err := c.match(w); err != nil {
		return err
	}
	w.Delete(c.path.key)
	c.done()
	return nil
}

// match returns why the entity of a request is not the one that the request means.
func (c *call) match(w *kept.Writes) error {
	given := c.r.Header.Get("If-Match")
	old, there := w.Get(c.path.key)
	switch {
	case given != "*" && !strings.HasPrefix(given, `W/"`):
		return entity.Invalid("the etag value %q specified in one of the request headers is not valid", given)
	case !there:
		return noResource()
	case given != "*" && given != old.ETag():
		return refuse(http.StatusPreconditionFailed, "UpdateConditionNotSatisfied",
			"The update condition specified in the request was not satisfied.")
	}
	return nil
}

// The parameters with the first key of a page.
const (
	nextPartition = "NextPartitionKey"
	nextRow       = "NextRowKey"
)

// mostAnswered is how many bytes a page has before it ends.
const mostAnswered = 4 << 20

// queryEntities answers with a page of the entities that a query wants, in the order of their keys.
func (c *call) queryEntities() error {
	f, most, err := c.conditions()
	if err != nil {
		return err
	}
	var first entity.Key
	if first.Partition, err = parseToken(nextPartition, c.query); err != nil {
		return err
	}
	if first.Row, err = parseToken(nextRow, c.query); err != nil {
		return err
	}
	within := c.grant.within
	if within.from && first.Compare(within.first) < 0 {
		first = within.first
	}
	value, size, chosen := []any{}, 0, c.chosen()
	s := &c.service.kept
	s.Lock()
	defer s.Unlock()
	for e := range s.From(c.table, first) {
		if within.ended(e.Key) {
			break
		}
		if !f.Matches(e.Get) {
			continue
		}
		if len(value) == most || size > mostAnswered {
			c.out.header.Set(continuation+nextPartition, token(e.Partition))
			c.out.header.Set(continuation+nextRow, token(e.Row))
			break
		}
		o := &odata.Object{}
		c.place.Write(o, c.level, e, chosen)
		value, size = append(value, o), size+e.Size()
	}
	o := c.described(c.place.Table)
	o.Set("value", value)
	c.reply(http.StatusOK, o)
	return nil
}
