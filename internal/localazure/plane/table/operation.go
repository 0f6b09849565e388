package table

import (
	"net/http"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/table/entity"
	"kaz/internal/localazure/plane/table/kept"
)

// operation is what a request can do.
type operation struct {
	// rights are the last parts of the actions that the operation needs, after that of the service. They are data actions if data is set.
	// The action instead stands for all of them.
	rights  []string
	instead string
	data    bool
	// signed are letters of a signature. The operation needs all of them, or one if any is set. One without letters needs a key or a token.
	signed string
	any    bool
	// kind is the letter of what the operation is about in a signature for an account.
	kind string
	// do carries out the operation, or change does so as one of several writes of a table.
	do     func(c *call) error
	change func(c *call, w *kept.Writes) error
}

// The method of changes of some properties, and the other name that it has.
const (
	merge = "MERGE"
	patch = http.MethodPatch
)

const (
	readEntities  = "tables/entities/read"
	writeEntities = "tables/entities/write"
	addEntities   = "tables/entities/add/action"
	updateRight   = "tables/entities/update/action"
	deleteRight   = "tables/entities/delete"
)

// onEntities is an operation that reads entities.
func onEntities(do func(c *call) error) operation {
	return operation{rights: []string{readEntities}, data: true, signed: "r", kind: "o", do: do}
}

// onEntity is an operation that changes an entity.
func onEntity(signed string, change func(c *call, w *kept.Writes) error, rights ...string) operation {
	return operation{rights: rights, instead: writeEntities, data: true, signed: signed, kind: "o", change: change}
}

// tablesCall is a request to the service, or about tables as a whole.
type tablesCall struct{ *call }

// aboutTables returns an operation as a function of the request.
func aboutTables(do func(tablesCall) error) func(*call) error {
	return func(c *call) error { return do(tablesCall{c}) }
}

// onTables is an operation on tables or on the service.
func onTables(right, signed, kind string, do func(tablesCall) error) operation {
	return operation{rights: []string{right}, signed: signed, any: true, kind: kind, do: aboutTables(do)}
}

// operations are the operations by method, by what the path names, and by the parameter comp. A new entity is one that need not exist.
var operations = map[string]operation{
	"GET service properties": onTables("read", "r", "s", tablesCall.settings),
	"PUT service properties": onTables("write", "w", "s", tablesCall.setSettings),
	"GET service stats":      onTables("read", "r", "s", tablesCall.statistics),

	"GET tables":       onTables("tables/read", "l", "c", tablesCall.listTables),
	"POST tables":      onTables("tables/write", "cw", "c", tablesCall.createTable),
	"GET table":        onTables("tables/read", "l", "c", tablesCall.getTable),
	"DELETE table":     onTables("tables/delete", "d", "c", tablesCall.deleteTable),
	"GET entities acl": {rights: []string{"tables/getAcl/action"}, kind: "c", do: aboutTables(tablesCall.policies)},
	"PUT entities acl": {rights: []string{"tables/setAcl/action"}, kind: "c", do: aboutTables(tablesCall.setPolicies)},

	"GET entities":     onEntities((*call).queryEntities),
	"GET entity":       onEntities((*call).getEntity),
	"POST entities":    onEntity("a", (*call).insert, addEntities),
	"PUT entity":       onEntity("u", (*call).update, updateRight),
	"MERGE entity":     onEntity("u", (*call).update, updateRight),
	"PUT new entity":   onEntity("au", (*call).upsert, addEntities, updateRight),
	"MERGE new entity": onEntity("au", (*call).upsert, addEntities, updateRight),
	"DELETE entity":    {rights: []string{deleteRight}, data: true, signed: "d", kind: "o", change: (*call).delete},
}

// operation returns what a request does.
func (c *call) operation() (operation, error) {
	if c.path.kind == batch && c.method == http.MethodPost {
		return operation{do: (*call).batch}, nil
	}
	if c.method == patch {
		c.method = merge
	}
	comp, target := strings.ToLower(c.query.Get("comp")), string(c.path.kind)
	if c.path.kind == oneEntity && (c.method == http.MethodPut || c.method == merge) && c.r.Header.Get("If-Match") == "" {
		target = "new " + target
	}
	o, known := operations[strings.TrimSpace(c.method+" "+target+" "+comp)]
	if known {
		return o, nil
	}
	if comp != "" {
		return o, account.InvalidParameter("comp", comp, "acl for a table, properties or stats for the service")
	}
	return o, refuse(http.StatusMethodNotAllowed, "MethodNotAllowed",
		"The requested method is not allowed on the specified resource: %s of %s.", c.r.Method, c.r.URL.Path)
}

// begin finds the account and the table of a request, and returns why it must not do what it asks for.
func (c *call) begin(o operation) (err error) {
	c.service.Azure.Look(func(w behaviour.World) {
		c.now = w.Now()
		at := account.FindEndpoint(w, account.Of(c.r.Host, "table"), "table")
		if err = at.Check(c.method); err != nil {
			return
		}
		c.account, c.secondary, c.services = at.Name, at.Secondary, at.ID.Child("tableServices", "default")
		if c.grant, err = c.authenticate(w, at.Doc); err != nil {
			return
		}
		err = c.allow(w, o)
	})
	return err
}

// allow returns why a request, or a part of a batch, must not carry out an operation. It finds the table.
func (c *call) allow(w behaviour.World, o operation) error {
	if c.path.kind == batch {
		return nil // its parts need rights
	}
	if err := c.grant.allows(w, o, c); err != nil {
		return err
	}
	if c.path.table == "" || c.path.kind == oneTable {
		return nil
	}
	doc, there := w.Get(c.scope())
	if !there {
		return noTable()
	}
	c.table = kept.Table{Key: c.scope().Key(), Made: storage.MadeAt(doc)}
	c.place = entity.Place{Base: c.base(), Account: c.account, Table: behaviour.Text(doc, "name")}
	return nil
}

// scope is the id of the table of the path, or of the service.
func (c *call) scope() azure.ID {
	if c.path.table == "" {
		return c.services
	}
	return c.services.Child("tables", c.path.table)
}

// base is the URL of the service.
func (c *call) base() string {
	scheme := "http"
	if c.r.TLS != nil {
		scheme = "https"
	}
	return account.Base(c.r, scheme)
}

// carryOut carries out an operation.
func (c *call) carryOut(o operation) error {
	if o.change == nil {
		return o.do(c)
	}
	s := &c.service.kept
	s.Lock()
	defer s.Unlock()
	w := s.Begin(c.table)
	if err := o.change(c, w); err != nil {
		return err
	}
	return w.Commit()
}

func noTable() error {
	return refuse(http.StatusNotFound, "TableNotFound", "The table specified does not exist.")
}

func noResource() error {
	return refuse(http.StatusNotFound, "ResourceNotFound", "The specified resource does not exist.")
}

// echoes reports whether the answer has what was written. The request can say that, and then the answer repeats it.
func (c *call) echoes() bool {
	const nothing, content = "return-no-content", "return-content"
	prefer := c.r.Header.Get("Prefer")
	if slices.Contains([]string{nothing, content}, prefer) {
		c.out.header.Set("Preference-Applied", prefer)
	}
	return prefer != nothing
}
