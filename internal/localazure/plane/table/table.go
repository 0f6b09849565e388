// Package table is the data plane of table storage in the local Azure. Clients make, list and delete tables, and write, read, query and
// delete entities, alone and in groups. They have a token of Entra ID, a key of the account, or a shared access signature. Layer L2.
//
// It keeps entities in memory, and in a journal if it has a file. Tables are documents of Microsoft.Storage, so that Azure Resource Manager
// shows the same tables and stored access policies.
package table

import (
	"io"
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
	"kaz/internal/localazure/plane/table/entity"
	"kaz/internal/localazure/plane/table/kept"
	"kaz/internal/localazure/plane/table/odata"
)

// Service serves the tables of all storage accounts.
type Service struct {
	// Tokens checks tokens of Entra ID.
	Tokens account.Tokens
	// Azure has the storage accounts and the role assignments.
	Azure account.Azure

	kept kept.Store
}

// Open has the service keep entities in a file, and reads those that it has. The log receives what is set aside.
func (s *Service) Open(file string, log *slog.Logger) error {
	if err := s.kept.Open(file, log); err != nil {
		return err
	}
	return s.forget()
}

// forget forgets the entities of tables that Azure Resource Manager has deleted.
func (s *Service) forget() (err error) {
	s.Azure.Look(func(w behaviour.World) {
		there := map[string]string{}
		for id, doc := range behaviour.Everywhere(w, storage.TableType) {
			there[id.Key()] = storage.MadeAt(doc)
		}
		s.kept.Lock()
		defer s.kept.Unlock()
		err = s.kept.Retain(there)
	})
	return err
}

// Close ends the writes to the file.
func (s *Service) Close() error { return s.kept.Close() }

// Answers reports whether a host serves the tables of an account.
func (s *Service) Answers(host string) bool { return account.Of(host, "table") != "" }

// call is a request, or a part of a batch.
type call struct {
	service *Service
	r       *http.Request
	query   url.Values
	method  string
	path    path
	level   odata.Level
	// account is the name of the account, and services the id of its table service. secondary says that the request is for its secondary
	// location. They are set when the account is known, like grant, what the request may do, and now, the time of the request.
	account   string
	services  azure.ID
	secondary bool
	grant     grant
	now       time.Time
	// table is the table of the path, and place where its entities are.
	table kept.Table
	place entity.Place
	// given is the entity in the body, once it is read.
	given *entity.Entity
	out   *answer
}

// answer is what is answered to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(text []byte) (int, error) {
	a.body = append(a.body, text...)
	return len(text), nil
}

// ServeHTTP implements http.Handler.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("x-ms-version", r.Header.Get("x-ms-version"))
	header.Set(account.RequestID, uuid.NewString())
	if id := r.Header.Get("x-ms-client-request-id"); id != "" {
		header.Set("x-ms-client-request-id", id)
	}
	if account.Share(w, r, s.Azure, account.Of(r.Host, "table"), "tableServices") {
		return
	}
	c := &call{service: s, r: r, query: queryOf(r.URL), out: &answer{status: http.StatusOK, header: header}}
	if err := c.serve(); err != nil {
		c.fail(err, "")
	}
	w.WriteHeader(c.out.status)
	_, _ = w.Write(c.out.body) // the client is gone
}

// queryOf returns the parameters of a URL. Clients write media types there with a semicolon as it is.
func queryOf(u *url.URL) url.Values {
	v, _ := url.ParseQuery(strings.ReplaceAll(u.RawQuery, ";", "%3B")) // what is no parameter is left out
	return v
}

func (c *call) serve() error {
	if err := c.read(); err != nil {
		return err
	}
	o, err := c.operation()
	if err != nil {
		return err
	}
	if err := c.begin(o); err != nil {
		return err
	}
	return c.carryOut(o)
}

// read reads what the request is about, and in which form it wants its answer.
func (c *call) read() (err error) {
	c.level = odata.Minimal
	if c.method, err = method(c.r); err != nil {
		return err
	}
	if c.path, err = parsePath(c.r.URL.Path); err != nil {
		return err
	}
	media := c.r.Header.Get("Accept")
	if format := c.query.Get("$format"); format != "" {
		media = format
	}
	level, known := odata.LevelOf(media)
	switch {
	case known:
		c.level = level
	case c.query.Get("comp") != "" || c.path.kind == batch: // their form is always the same
	case strings.Contains(media, "atom"):
		return refuse(http.StatusUnsupportedMediaType, "AtomFormatNotSupported", "Atom format is not supported.")
	default:
		return refuse(http.StatusUnsupportedMediaType, "MediaTypeNotSupported",
			"None of the provided media types are supported: %q is given, application/json is.", media)
	}
	return nil
}

// method returns the method of a request. One that some clients cannot send is in a header.
func method(r *http.Request) (string, error) {
	const header = "X-HTTP-Method"
	given := r.Header.Values(header)
	switch {
	case len(given) == 0:
		return r.Method, nil
	case len(given) > 1:
		return "", refuse(http.StatusBadRequest, "XMethodIncorrectCount", "More than one X-HTTP-Method is specified.")
	case r.Method != http.MethodPost:
		return "", refuse(http.StatusBadRequest, "XMethodNotUsingPost", "The request uses X-HTTP-Method with an Http verb other than POST.")
	case given[0] != http.MethodPut && given[0] != http.MethodDelete && given[0] != merge:
		return "", refuse(http.StatusBadRequest, "XMethodIncorrectValue",
			"The specified X-HTTP-Method %q is invalid: PUT, MERGE and DELETE are allowed.", given[0])
	}
	return given[0], nil
}

// mostBody is how many bytes a request brings.
const mostBody = 4 << 20

// body reads the body of the request.
func (c *call) body() ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(c.out, c.r.Body, mostBody))
	if err != nil {
		return nil, account.TooLarge(err)
	}
	return text, nil
}

// object reads the body of the request, which is JSON.
func (c *call) object() ([]byte, error) {
	if kind := strings.ToLower(c.r.Header.Get(contentType)); kind != "" && !strings.HasPrefix(kind, "application/json") {
		if strings.Contains(kind, "atom") {
			return nil, refuse(http.StatusUnsupportedMediaType, "AtomFormatNotSupported", "Atom format is not supported.")
		}
		return nil, account.InvalidHeader(contentType, kind, "application/json")
	}
	return c.body()
}

func refuse(status int, code, format string, args ...any) *behaviour.Error {
	return behaviour.Refusal(status, code, format, args...)
}
