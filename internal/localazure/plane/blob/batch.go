package blob

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"

	"github.com/google/uuid"

	"kaz/internal/localazure/plane/account"
)

// The most requests in a batch and the most bytes that it has, as Azure documents them.
const (
	mostBatched = 256
	mostBatch   = 4 << 20
)

// batch carries out the requests in a request: deletions of blobs and changes of their tiers. Each needs a right of its own.
func (c serviceCall) batch() error {
	_, parameters, err := mime.ParseMediaType(c.r.Header.Get(contentType))
	if err != nil || parameters["boundary"] == "" {
		return account.InvalidHeader(contentType, c.r.Header.Get(contentType), "multipart/mixed with a boundary")
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, mostBatch))
	if err != nil {
		return refuse(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "%v", err)
	}
	parts := multipart.NewReader(bytes.NewReader(body), parameters["boundary"])
	var requests []*http.Request
	var ids []string
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return invalidInput("the body is no multipart message: %v", err)
		}
		if len(requests) == mostBatched {
			return refuse(http.StatusBadRequest, "ExceedsMaxBatchRequestCount",
				"The batch operation exceeds maximum number of requests that can be executed, which is %d.", mostBatched)
		}
		r, err := http.ReadRequest(bufio.NewReader(part))
		if err != nil {
			return invalidInput("request %d is no HTTP request: %v", len(requests), err)
		}
		requests, ids = append(requests, r), append(ids, part.Header.Get("Content-ID"))
	}
	if len(requests) == 0 {
		return invalidInput("there is no request")
	}
	return c.answerBatch(requests, ids)
}

func invalidInput(format string, args ...any) error {
	return refuse(http.StatusBadRequest, "InvalidInput", "One of the request inputs is not valid: "+format+".", args...)
}

// answerBatch carries out requests in their order, and answers with all answers.
func (c serviceCall) answerBatch(requests []*http.Request, ids []string) error {
	var text bytes.Buffer
	out := multipart.NewWriter(&text)
	if err := out.SetBoundary("batchresponse_" + uuid.NewString()); err != nil {
		return err
	}
	for i, r := range requests {
		part, err := out.CreatePart(textproto.MIMEHeader{contentType: {"application/http"}, "Content-ID": {ids[i]}})
		if err != nil {
			return err
		}
		answer := c.one(r)
		fmt.Fprintf(part, "HTTP/1.1 %d %s\r\n", answer.status, http.StatusText(answer.status))
		_ = answer.header.Write(part) // into memory
		_, _ = part.Write(append([]byte("\r\n"), answer.body.Bytes()...))
	}
	if err := out.Close(); err != nil {
		return err
	}
	c.w.Header().Set(contentType, "multipart/mixed; boundary="+out.Boundary())
	c.w.WriteHeader(http.StatusAccepted)
	_, _ = c.w.Write(text.Bytes()) // the client is gone
	return nil
}

// one carries out a request of a batch.
func (c serviceCall) one(r *http.Request) *answer {
	answer := newAnswer()
	address, err := url.Parse("https://" + c.r.Host + r.URL.RequestURI())
	deletes := r.Method == http.MethodDelete && r.URL.Query().Get("restype") == ""
	if tier := r.Method == http.MethodPut && r.URL.Query().Get("comp") == "tier"; err != nil || !deletes && !tier {
		account.Fail(answer, r, invalidInput("a batch deletes blobs and sets their tiers, and not %s %s", r.Method, r.URL.Path))
		return answer
	}
	sent := r.Clone(c.r.Context())
	sent.URL, sent.Host, sent.Body = address, account.PartHost(c.r, r.URL.Path), http.NoBody
	sent.TLS, sent.RemoteAddr = c.r.TLS, c.r.RemoteAddr
	c.again(answer, account.Resolve(sent))
	if sent.Header.Get("x-ms-version") == "" { // it has that of the batch
		answer.Header().Set("x-ms-version", c.r.Header.Get("x-ms-version"))
	}
	return answer
}

// answer keeps what is answered to a request that is part of another one.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func newAnswer() *answer { return &answer{header: http.Header{}} }

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(text []byte) (int, error) { return a.body.Write(text) }
