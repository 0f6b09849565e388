package table

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/table/entity"
	"kaz/internal/localazure/plane/table/filter"
	"kaz/internal/localazure/plane/table/odata"
)

// nameField is the property with the name of a table.
const nameField = "TableName"

// describeTable adds a table to an object.
func (c tablesCall) describeTable(o *odata.Object, name string) *odata.Object {
	if c.level == odata.Full {
		o.Set("odata.type", c.account+".Tables")
		o.Set("odata.id", c.base()+tablePath(name))
		o.Set("odata.editLink", tablePath(name))
	}
	o.Set(nameField, name)
	return o
}

func tablePath(name string) string { return "Tables('" + name + "')" }

// createTable makes a table. Its document is that of Azure Resource Manager.
func (c tablesCall) createTable() error {
	text, err := c.object()
	if err != nil {
		return err
	}
	var given struct{ TableName string }
	if err := json.Unmarshal(text, &given); err != nil {
		return entity.Invalid("%v", err)
	}
	if err := storage.CheckTableName(given.TableName); err != nil {
		return err
	}
	id := c.services.Child("tables", given.TableName)
	err = c.service.Azure.Do(func(w behaviour.World) error {
		if _, there := w.Get(id); there {
			return refuse(http.StatusConflict, "TableAlreadyExists", "The table specified already exists.")
		}
		return w.Apply(behaviour.Itself(), id, behaviour.Object{"properties": behaviour.Object{}})
	})
	if err == nil {
		err = c.service.forget()
	}
	if err != nil {
		return err
	}
	c.out.header.Set("Location", c.base()+tablePath(given.TableName))
	if !c.echoes() {
		c.out.header.Set("DataServiceId", c.base()+tablePath(given.TableName))
		c.done()
		return nil
	}
	c.reply(http.StatusCreated, c.describeTable(c.described("Tables/@Element"), given.TableName))
	return nil
}

// deleteTable deletes a table with its entities.
func (c tablesCall) deleteTable() error {
	id := c.services.Child("tables", c.path.table)
	err := c.service.Azure.Do(func(w behaviour.World) error {
		if _, there := w.Get(id); !there {
			return noResource()
		}
		return w.Remove(behaviour.Itself(), id)
	})
	if err != nil {
		return err
	}
	c.service.kept.Lock()
	defer c.service.kept.Unlock()
	if err := c.service.kept.Drop(id.Key()); err != nil {
		return err
	}
	c.done()
	return nil
}

// names returns the names of all tables in their order, which capitals do not change.
func (c tablesCall) names() (all []string) {
	c.service.Azure.Look(func(w behaviour.World) {
		for id := range w.List(c.services, storage.TableType) {
			all = append(all, id.Name())
		}
	})
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return all
}

// getTable answers with a table.
func (c tablesCall) getTable() error {
	for _, name := range c.names() {
		if strings.EqualFold(name, c.path.table) {
			c.reply(http.StatusOK, c.describeTable(c.described("Tables/@Element"), name))
			return nil
		}
	}
	return noResource()
}

const nextTable = "NextTableName"

// listTables answers with a page of the tables.
func (c tablesCall) listTables() error {
	f, most, err := c.conditions()
	if err != nil {
		return err
	}
	first, err := parseToken(nextTable, c.query)
	if err != nil {
		return err
	}
	value := []any{}
	for _, name := range c.names() {
		property := func(property string) (v odata.Value) {
			if property == nameField {
				v = odata.StringOf(name)
			}
			return v
		}
		if strings.ToLower(name) < strings.ToLower(first) || !f.Matches(property) {
			continue
		}
		if len(value) == most {
			c.out.header.Set(continuation+nextTable, token(name))
			break
		}
		value = append(value, c.describeTable(&odata.Object{}, name))
	}
	o := c.described("Tables")
	o.Set("value", value)
	c.reply(http.StatusOK, o)
	return nil
}

// conditions returns which elements a query wants, and how many a page of its answer has.
func (c *call) conditions() (filter.Filter, int, error) {
	const top, mostListed = "$top", 1000
	most := mostListed
	if text := c.query.Get(top); text != "" {
		v, err := odata.Parse(odata.Int32, text)
		n, positive := v.Positive()
		if err != nil || !positive {
			return nil, 0, account.InvalidParameter(top, text, "a number of at least 1")
		}
		most = min(n, mostListed)
	}
	f, err := filter.Parse(c.query.Get("$filter"))
	if err != nil {
		return nil, 0, entity.Invalid("%v", err)
	}
	return f, most, nil
}

// policies answers with the stored access policies of a table.
func (c tablesCall) policies() error {
	c.service.Azure.Look(func(w behaviour.World) {
		doc, _ := w.Get(c.scope())
		account.ReplyPolicies(c.out, doc)
	})
	return nil
}

// setPolicies replaces the stored access policies of a table.
func (c tablesCall) setPolicies() error {
	policies, err := account.GivenPolicies(c.out, c.r)
	if err != nil {
		return err
	}
	err = c.service.Azure.Do(func(w behaviour.World) error {
		if !w.Edit(c.scope(), func(doc behaviour.Object) { storage.SetPolicies(doc, policies) }) {
			return noTable()
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.out.status = http.StatusNoContent
	return nil
}
