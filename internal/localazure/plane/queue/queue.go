// Package queue is the data plane of queue storage in the local Azure. Clients make, list and delete queues, and put, get, peek, change
// and delete messages. They have a token of Entra ID, a key of the account, or a shared access signature. Layer L2.
//
// It keeps messages in memory, and in a journal if it has a directory. Queues are documents of Microsoft.Storage, so that Azure Resource
// Manager shows the same queues.
package queue

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/queue/kept"
	"kaz/internal/localazure/plane/sharedkey"
)

// Service serves the queues of all storage accounts.
type Service struct {
	// Tokens checks tokens of Entra ID.
	Tokens account.Tokens
	// Azure has the storage accounts and the role assignments.
	Azure account.Azure

	kept kept.Store
}

// Load has the service keep messages in a directory, and reads those that it has. The log receives what cannot be read.
func (s *Service) Load(dir string, log *slog.Logger) error { return s.kept.Load(dir, log) }

// Close ends what Load began.
func (s *Service) Close() error { return s.kept.Close() }

// Answers reports whether a host serves the queues of an account.
func (s *Service) Answers(host string) bool { return account.Of(host, "queue") != "" }

// call is a request.
type call struct {
	service *Service
	w       http.ResponseWriter
	r       *http.Request
	query   url.Values
	// caller is the principal that has sent a token, nil for a signature of any kind.
	caller *behaviour.Principal
	// name is the name of the queue, "" for the service. message is the id of the message, "" for the messages of the queue.
	name, message string
	// secondary says that the request was sent to the other region of the account.
	secondary bool
	// id is the id of the queue, or of the service of the account. It is set when the caller is allowed, like now, the time of the request.
	id  azure.ID
	now time.Time
	// made is when the queue was made.
	made string
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("x-ms-version", r.Header.Get("x-ms-version"))
	header.Set(account.RequestID, uuid.NewString())
	if id := r.Header.Get("x-ms-client-request-id"); id != "" {
		header.Set("x-ms-client-request-id", id)
	}
	if account.Share(w, r, s.Azure, account.Of(r.Host, "queue"), "queueServices") {
		return
	}
	c := &call{service: s, w: w, r: r, query: r.URL.Query()}
	if err := c.serve(); err != nil {
		account.Fail(w, r, err)
	}
}

func (c *call) serve() (err error) {
	if c.query.Get("sig") == "" && !sharedkey.Signed(c.r) {
		if c.caller, err = c.service.Tokens.Caller(c.w, c.r); err != nil {
			return err
		}
	}
	if err := storage.CheckMetadata(c.r.Header); err != nil {
		return err
	}
	o, err := c.operation()
	if err != nil {
		return err
	}
	if err := c.allow(o); err != nil {
		return err
	}
	return o.do(c)
}

// operation returns what the request does.
func (c *call) operation() (operation, error) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(c.r.URL.Path, "/"), "/")
	kind, message, _ := strings.Cut(rest, "/")
	c.name, c.message = name, message
	target := "queue"
	switch {
	case name == "":
		target = "service"
	case kind == "messages" && message != "":
		target = "message"
	case kind == "messages":
		target = "messages"
	case kind != "":
		target = "?"
	}
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	comp := c.query.Get("comp")
	if strings.EqualFold(c.query.Get("peekonly"), "true") {
		comp = "peek"
	}
	o, known := operations[strings.TrimSpace(method+" "+target+" "+comp)]
	if !known {
		return o, behaviour.Refusal(http.StatusNotImplemented, "NotImplemented", "The local Azure does not serve %s %s with comp %q.",
			c.r.Method, c.r.URL.Path, comp)
	}
	return o, nil
}

// operation is what a request can do.
type operation struct {
	// actions are the last parts of the rights, after that of the service, each of which allows the operation. Those in a list are needed
	// together. They are data actions if data is set.
	actions [][]string
	data    bool
	// signed are letters of a signature. The operation needs one of them. What has own set is allowed by a signature for a queue, too.
	signed string
	own    bool
	// creates says that the queue need not exist.
	creates bool
	do      func(c *call) error
}

// onQueue is an operation on the service or on a queue.
func onQueue(action, signed string, do func(c *call) error) operation {
	return operation{actions: [][]string{{action}}, signed: signed, do: do}
}

// onMessages is an operation on messages.
func onMessages(signed string, do func(c *call) error, actions ...[]string) operation {
	return operation{actions: actions, data: true, signed: signed, own: true, do: do}
}

// The data actions, by themselves.
const (
	add     = "queues/messages/add/action"
	read    = "queues/messages/read"
	write   = "queues/messages/write"
	remove  = "queues/messages/delete"
	process = "queues/messages/process/action"
)

// operations are the operations by method, by what the path names, and by the parameter comp, which is "peek" for peekonly.
var operations = map[string]operation{
	"GET service list":       onQueue("queues/read", "l", (*call).listQueues),
	"GET service properties": onQueue("read", "r", (*call).settings),
	"PUT service properties": onQueue("write", "w", (*call).setSettings),
	"GET service stats":      onQueue("read", "r", (*call).statistics),

	"PUT queue":          {actions: [][]string{{"queues/write"}}, signed: "cw", creates: true, do: (*call).create},
	"DELETE queue":       onQueue("queues/delete", "d", (*call).delete),
	"GET queue metadata": {actions: [][]string{{"queues/read"}}, signed: "r", own: true, do: (*call).metadata},
	"PUT queue metadata": onQueue("queues/write", "w", (*call).setMetadata),
	"GET queue acl":      onQueue("queues/getAcl/action", "", (*call).policies),
	"PUT queue acl":      onQueue("queues/setAcl/action", "", (*call).setPolicies),

	"POST messages":     onMessages("a", (*call).put, []string{add}, []string{write}),
	"GET messages":      onMessages("p", (*call).get, []string{process}, []string{remove, read}),
	"GET messages peek": onMessages("r", (*call).peek, []string{read}),
	"DELETE messages":   onMessages("d", (*call).clear, []string{remove}),
	"PUT message":       onMessages("u", (*call).update, []string{write}, []string{process}),
	"DELETE message":    onMessages("p", (*call).deleteMessage, []string{remove}, []string{process}),
}
