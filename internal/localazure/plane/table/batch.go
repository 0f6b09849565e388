package table

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/table/entity"
)

// mostBatched is how many changes a batch has.
const mostBatched = 100

// contentID is the header by which clients tell the answers of a batch.
const contentID = "Content-ID"

// batch carries out a set of changes together, or a query.
func (c *call) batch() error {
	text, err := c.body()
	if err != nil {
		return err
	}
	parts, err := partsOf(c.r.Header.Get(contentType), text)
	if err != nil {
		return err
	}
	if len(parts) != 1 {
		return entity.Invalid("the batch has %d parts, one is allowed: a set of changes, or a query", len(parts))
	}
	if kind := parts[0].header.Get(contentType); strings.HasPrefix(kind, "multipart/mixed") {
		changes, err := partsOf(kind, parts[0].body)
		if err != nil {
			return err
		}
		return c.answerBatch(c.changes(changes), "changesetresponse_")
	}
	return c.answerBatch([]*answer{c.single(parts[0])}, "")
}

// part is a part of a message.
type part struct {
	header textproto.MIMEHeader
	body   []byte
}

// partsOf returns the parts of a message of a type.
func partsOf(kind string, text []byte) (all []part, err error) {
	_, parameters, err := mime.ParseMediaType(kind)
	if err != nil || parameters["boundary"] == "" {
		return nil, account.InvalidHeader(contentType, kind, "multipart/mixed with a boundary")
	}
	for r := multipart.NewReader(bytes.NewReader(text), parameters["boundary"]); ; {
		p, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, entity.Invalid("the body is no multipart message: %v", err)
		}
		body, err := io.ReadAll(p)
		if err != nil {
			return nil, entity.Invalid("part %d is cut off: %v", len(all), err)
		}
		all = append(all, part{p.Header, body})
	}
}

// part begins a part of a batch: a request of its own, with the rights of the batch.
func (c *call) part(p part) (*call, operation, error) {
	one := &call{service: c.service, r: c.r, account: c.account, secondary: c.secondary, services: c.services, grant: c.grant, now: c.now,
		query: url.Values{}, out: &answer{header: http.Header{}}}
	one.out.header.Set(account.RequestID, c.out.header.Get(account.RequestID))
	in := textproto.NewReader(bufio.NewReader(bytes.NewReader(p.body)))
	line, err := in.ReadLine()
	if err != nil {
		return one, operation{}, entity.Invalid("a part has no request")
	}
	words := strings.Fields(line)
	header, err := in.ReadMIMEHeader()
	if len(words) != 3 || err != nil && !errors.Is(err, io.EOF) {
		return one, operation{}, entity.Invalid("a part has no request, but %.100q", line)
	}
	address, err := url.Parse(words[1])
	if err != nil || !strings.HasPrefix(address.Path, "/") {
		return one, operation{}, entity.Invalid("a part is for the URL %q", words[1])
	}
	body, _ := io.ReadAll(in.R) // of memory
	sent := &http.Request{Method: words[0], URL: address, Host: account.PartHost(c.r, address.Path), Header: http.Header(header),
		TLS: c.r.TLS, Body: io.NopCloser(bytes.NewReader(body))}
	one.r = account.Resolve(sent.WithContext(c.r.Context()))
	one.query = queryOf(address)
	if id := header.Get(contentID); id != "" {
		one.out.header.Set(contentID, id)
	}
	if err := one.read(); err != nil {
		return one, operation{}, err
	}
	o, err := one.operation()
	if err != nil {
		return one, o, err
	}
	c.service.Azure.Look(func(w behaviour.World) { err = one.allow(w, o) })
	return one, o, err
}

// single carries out the query of a batch.
func (c *call) single(p part) *answer {
	one, o, err := c.part(p)
	if err == nil && (o.do == nil || one.method != http.MethodGet) {
		err = entity.Invalid("a change is in a set of changes")
	}
	if err == nil {
		err = o.do(one)
	}
	if err != nil {
		one.fail(err, "")
	}
	return one.out
}

// changes carries out changes together. If one fails, its answer is the only one.
func (c *call) changes(parts []part) (answers []*answer) {
	var calls []*call
	var todo []operation
	var wrong []error
	for _, p := range parts {
		one, o, err := c.part(p)
		calls, todo, wrong = append(calls, one), append(todo, o), append(wrong, err)
	}
	s := &c.service.kept
	s.Lock()
	defer s.Unlock()
	var all *group
	for i, one := range calls {
		err := wrong[i]
		switch {
		case err != nil:
		case i == mostBatched:
			err = refuse(http.StatusBadRequest, "InvalidInput",
				"The batch request operation exceeds the maximum %d changes per change set.", mostBatched)
		case todo[i].change == nil:
			err = entity.Invalid("a set of changes has changes of entities alone")
		default:
			all, err = all.add(one, todo[i])
		}
		if err != nil {
			return one.failed(min(i, mostBatched-1), err)
		}
		answers = append(answers, one.out)
	}
	if all == nil {
		return (&call{r: c.r, out: &answer{header: http.Header{}}}).failed(0, entity.Invalid("there is no change"))
	}
	if err := all.writes.Commit(); err != nil {
		return all.last.failed(len(answers)-1, err)
	}
	return answers
}

// failed is the answer to changes of which one has failed.
func (c *call) failed(index int, err error) []*answer {
	c.fail(err, strconv.Itoa(index)+":")
	return []*answer{c.out}
}

// spelled are the names of headers that some clients look for in parts as Azure spells them.
var spelled = map[string]string{"Etag": "ETag", "Content-Id": contentID, "Dataserviceid": "DataServiceId",
	"Dataserviceversion": "DataServiceVersion"}

// writePart writes an answer into a message in memory.
func (a *answer) writePart(w io.Writer) {
	a.header.Del(account.RequestID)
	fmt.Fprintf(w, "HTTP/1.1 %d %s\r\n", a.status, http.StatusText(a.status))
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		fmt.Fprintf(w, "%s: %s\r\n", cmp.Or(spelled[name], name), a.header.Get(name))
	}
	fmt.Fprintf(w, "\r\n%s", a.body)
}

// answerBatch answers with answers: each in a part of the message, or all in a part of their own if that has a boundary.
func (c *call) answerBatch(answers []*answer, inner string) error {
	var text bytes.Buffer
	out := multipart.NewWriter(&text)
	if err := out.SetBoundary("batchresponse_" + uuid.NewString()); err != nil {
		return err
	}
	in := out
	var within bytes.Buffer
	if inner != "" {
		in = multipart.NewWriter(&within)
		if err := in.SetBoundary(inner + uuid.NewString()); err != nil {
			return err
		}
	}
	for _, a := range answers {
		p, err := in.CreatePart(textproto.MIMEHeader{contentType: {"application/http"}, "Content-Transfer-Encoding": {"binary"}})
		if err != nil {
			return err
		}
		a.writePart(p)
	}
	if inner != "" {
		if err := in.Close(); err != nil {
			return err
		}
		p, err := out.CreatePart(textproto.MIMEHeader{contentType: {"multipart/mixed; boundary=" + in.Boundary()}})
		if err != nil {
			return err
		}
		_, _ = p.Write(within.Bytes()) // into memory
	}
	if err := out.Close(); err != nil {
		return err
	}
	c.headers()
	c.out.header.Del("DataServiceVersion")
	c.out.header.Set(contentType, "multipart/mixed; boundary="+out.Boundary())
	c.out.status, c.out.body = http.StatusAccepted, text.Bytes()
	return nil
}
