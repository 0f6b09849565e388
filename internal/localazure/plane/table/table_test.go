package table_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/table"
	"kaz/internal/localazure/providers"
)

// plane is a local Azure with the account "acc" and its table "People", which has the entity p, r.
type plane struct {
	testing.TB
	service *table.Service
}

func start(t testing.TB) *plane {
	t.Helper()
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{TB: t, service: &table.Service{Azure: e, Tokens: account.Tokens{
		Authenticate: func(token string, _ ...string) (*behaviour.Principal, error) {
			if token != "good" {
				return nil, errors.New("no token")
			}
			return &behaviour.Principal{ObjectID: "me"}, nil
		}}}}
	if err := e.Do(func(w behaviour.World) error {
		group := azure.GroupID(core.DefaultSubscription, "rg")
		if err := w.Apply(behaviour.Itself(), group, behaviour.Object{"location": "westeurope"}); err != nil {
			return err
		}
		return w.Apply(behaviour.Itself(), group.Resource(storage.AccountType, "acc"), behaviour.Object{"location": "westeurope",
			"kind": "StorageV2", "sku": behaviour.Object{"name": "Standard_RAGRS"}})
	}); err != nil {
		t.Fatal(err)
	}
	p.want("POST /Tables", `{"TableName":"People"}`, 201, `"TableName":"People"`)
	p.want("POST /People", `{"PartitionKey":"p","RowKey":"r","N":1}`, 201, `"N":1`)
	return p
}

// want sends a request such as "GET /Tables" with a token, and with headers. The answer has a status and a text.
func (p *plane) want(request, body string, status int, text string, headers ...string) *httptest.ResponseRecorder {
	p.Helper()
	method, path, _ := strings.Cut(request, " ")
	r := httptest.NewRequest(method, "https://acc.table.core.windows.net"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer good")
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	p.service.ServeHTTP(w, r)
	if got := w.Body.String(); w.Code != status || !strings.Contains(got, text) {
		p.Errorf("%s: %d %s, want %d with %s", request, w.Code, got, status, text)
	}
	return w
}

// Requests that are wrong are refused with the codes of Azure.
func TestRefusals(t *testing.T) {
	p := start(t)
	const one = "/People(PartitionKey='p',RowKey='r')"
	for _, x := range []struct {
		request, body string
		status        int
		code          string
		headers       []string
	}{
		{"GET /Tables", "", 401, "NoAuthenticationInformation", []string{"Authorization", ""}},
		{"GET /Tables", "", 401, "InvalidAuthenticationInfo", []string{"Authorization", "", "Authorization", "Bearer bad"}},
		{"GET /Tables", "", 415, "AtomFormatNotSupported", []string{"Accept", "application/atom+xml"}},
		{"GET /Tables?$format=text/plain", "", 415, "MediaTypeNotSupported", nil},
		{"POST /Tables", "<entry/>", 415, "AtomFormatNotSupported", []string{"Content-Type", "application/atom+xml"}},
		{"POST /Tables", `{"TableName":"Other"}`, 400, "InvalidHeaderValue", []string{"Content-Type", "text/plain"}},
		{"POST /Tables", `{`, 400, "InvalidInput", nil},
		{"POST /Tables", `{}`, 400, "OutOfRangeInput", nil},
		{"GET /Tables('Absent')", "", 404, "ResourceNotFound", nil},
		{"GET /Tables(x)", "", 400, "InvalidUri", nil},
		{"GET /a/b", "", 400, "InvalidUri", nil},
		{"GET /People(RowKey='r')", "", 400, "InvalidUri", nil},
		{"GET /People?$top=0", "", 400, "InvalidQueryParameterValue", nil},
		{"GET /People?$top=x", "", 400, "InvalidQueryParameterValue", nil},
		{"GET /People?NextPartitionKey=x", "", 400, "InvalidQueryParameterValue", nil},
		{"GET /People?comp=properties", "", 400, "InvalidQueryParameterValue", nil},
		{"DELETE /People", "", 405, "MethodNotAllowed", nil},
		{"DELETE " + one, "", 400, "MissingRequiredHeader", nil},
		{"DELETE " + one, "", 400, "InvalidInput", []string{"If-Match", "x"}},
		{"DELETE " + one, "", 412, "UpdateConditionNotSatisfied", []string{"If-Match", `W/"x"`}},
		{"POST " + one, "", 400, "XMethodIncorrectValue", []string{"X-HTTP-Method", "GET"}},
		{"POST " + one, "", 400, "XMethodIncorrectCount", []string{"X-HTTP-Method", "PUT", "X-HTTP-Method", "MERGE"}},
		{"PUT " + one, "", 400, "XMethodNotUsingPost", []string{"X-HTTP-Method", "MERGE"}},
		{"PUT /People(PartitionKey='p',RowKey='%23')", "{}", 400, "OutOfRangeInput", nil},
		{"POST /People", strings.Repeat(" ", 4<<20) + "{}", 413, "RequestBodyTooLarge", nil},
		{"GET /?restype=service&comp=stats", "", 400, "InvalidQueryParameterValue", nil},
		{"GET /?restype=service&comp=other", "", 400, "InvalidQueryParameterValue", nil},
		{"PUT /?restype=service&comp=properties", "<", 400, "InvalidXmlDocument", nil},
		{"PUT /Absent?comp=acl", "", 404, "TableNotFound", nil},
		{"OPTIONS /People", "", 403, "CorsPreflightFailure", []string{"Origin", "https://a.example",
			"Access-Control-Request-Method", "GET"}},
	} {
		want := `{"odata.error":{"code":"` + x.code + `","message":{"lang":"en-US","value":"`
		if strings.Contains(x.request, "comp=") {
			want = `<m:error xmlns:m="http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"><m:code>` + x.code + `</m:code>`
		} else if x.request == "OPTIONS /People" {
			want = x.code
		}
		p.want(x.request, x.body, x.status, want, x.headers...)
	}
	p.want("GET "+one, "", 200, `"N":1`)
}

// Clients that cannot send some methods name them in a header. PATCH is another name of MERGE.
func TestMethods(t *testing.T) {
	p := start(t)
	const one = "/People(RowKey='r',PartitionKey='p')"
	p.want("POST "+one, `{"M":2}`, 204, "", "X-HTTP-Method", "MERGE")
	p.want("PATCH "+one, `{"O":3}`, 204, "", "If-Match", "*")
	p.want("GET "+one, "", 200, `"N":1,"M":2,"O":3}`)
	p.want("POST "+one, `{"M":2}`, 204, "", "X-HTTP-Method", "PUT")
	p.want("GET "+one+"?$select=N,M", "", 200, `"M":2,"N":null}`)
	p.want("POST "+one, "", 204, "", "X-HTTP-Method", "DELETE", "If-Match", "*")
	p.want("GET "+one, "", 404, "ResourceNotFound")
	w := p.want("POST /People()", `{"PartitionKey":"","RowKey":"'"}`, 204, "", "Prefer", "return-no-content")
	for name, want := range map[string]string{"Preference-Applied": "return-no-content",
		"DataServiceId": "https://acc.table.core.windows.net/People(PartitionKey='',RowKey='%27%27')"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	p.want("GET /People(PartitionKey='',RowKey='%27%27')", "", 200, `"RowKey":"'"`)
	p.want("GET /Tables?$format=application/json;odata=fullmetadata", "", 200, `{"odata.metadata":"https://acc.table.core.windows.net/`+
		`$metadata#Tables","value":[{"odata.type":"acc.Tables","odata.id":"https://acc.table.core.windows.net/Tables('People')",`+
		`"odata.editLink":"Tables('People')","TableName":"People"}]}`)
	p.want("GET /Tables('people')", "", 200, `{"TableName":"People"}`, "Accept", "application/json;odata=nometadata")
}

// Pages of tables begin where the one before ended.
func TestPagesOfTables(t *testing.T) {
	p := start(t)
	for _, name := range []string{"bees", "Ants", "Cats"} {
		p.want("POST /Tables", `{"TableName":"`+name+`"}`, 204, "", "Prefer", "return-no-content")
	}
	none := []string{"Accept", "application/json;odata=nometadata"}
	w := p.want("GET /Tables?$top=2", "", 200, `{"value":[{"TableName":"Ants"},{"TableName":"bees"}]}`, none...)
	next := url.QueryEscape(w.Header().Get("x-ms-continuation-NextTableName"))
	w = p.want("GET /Tables?$top=2&NextTableName="+next, "", 200, `{"value":[{"TableName":"Cats"},{"TableName":"People"}]}`, none...)
	if got := w.Header().Get("x-ms-continuation-NextTableName"); got != "" {
		t.Errorf("there is another page: %s", got)
	}
	p.want("GET /Tables?$filter=TableName%20eq%20%27Cats%27", "", 200, `{"value":[{"TableName":"Cats"}]}`, none...)
}

// message is the body of a batch, with parts that are in a set of changes or not.
func message(inner bool, parts ...string) string {
	boundary, text := "b", ""
	if inner {
		boundary = "c"
	}
	for _, part := range parts {
		text += "--" + boundary + "\r\nContent-Type: application/http\r\n\r\n" + part + "\r\n"
	}
	text += "--" + boundary + "--\r\n"
	if inner {
		text = "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + text + "--b--\r\n"
	}
	return text
}

// A batch is a set of changes or a query. Its parts are answered as if they came alone, with the id that the client gives them.
func TestBatch(t *testing.T) {
	p := start(t)
	kind := []string{"Content-Type", "multipart/mixed; boundary=b"}
	const insert = "POST https://acc.table.core.windows.net/People HTTP/1.1\r\nContent-ID: 7\r\nPrefer: return-no-content\r\n\r\n\r\n" +
		`{"PartitionKey":"p","RowKey":"%s"}`
	w := p.want("POST /$batch", message(true, fmt.Sprintf(insert, "s"), "DELETE /People(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n"),
		202, "HTTP/1.1 204 No Content\r\n", kind...)
	for _, want := range []string{"Content-ID: 7\r\n", "Location: https://acc.table.core.windows.net/People(PartitionKey='p',RowKey='s')\r\n",
		"Preference-Applied: return-no-content\r\n", "ETag: W/\"datetime'"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("the answer has no %q: %s", want, w.Body)
		}
	}
	p.want("POST /$batch", message(false, "GET /People(PartitionKey='p',RowKey='s') HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n\r\n"),
		202, `{"PartitionKey":"p","RowKey":"s",`, kind...)
	p.want("POST /$batch", message(false, "GET /People(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n"), 202, "HTTP/1.1 404 Not Found\r\n", kind...)
	for text, want := range map[string]string{
		message(true):                                                                                             "0:One of the request inputs is not valid: there is no change.",
		message(false, fmt.Sprintf(insert, "t")):                                                                  "a change is in a set of changes",
		message(true, "GET /People HTTP/1.1\r\n\r\n"):                                                             "0:One of the request inputs is not valid: a set of changes has changes",
		message(true, "nonsense"):                                                                                 "a part has no request",
		message(true, "DELETE x:y HTTP/1.1\r\n\r\n"):                                                              "a part is for the URL",
		message(true, fmt.Sprintf(insert, "t"), "POST /Tables HTTP/1.1\r\n\r\n{}"):                                "1:One of the request inputs is not valid: a set of changes has changes",
		message(true, fmt.Sprintf(insert, "t"), "PUT /$batch HTTP/1.1\r\n\r\n"):                                   "1:The requested method is not allowed",
		message(true, fmt.Sprintf(insert, "t"), "PUT /People(x) HTTP/1.1\r\n\r\n"):                                "1:The requested URI does not represent",
		message(true, fmt.Sprintf(insert, "t"), strings.ReplaceAll(fmt.Sprintf(insert, "u"), "People", "Absent")): "1:The table specified does not exist.",
	} {
		p.want("POST /$batch", text, 202, want, kind...)
	}
	p.want("GET /People(PartitionKey='p',RowKey='t')", "", 404, "ResourceNotFound")
	for text, want := range map[string]string{"": "the batch has 0 parts", "--b\r\nx": "no multipart message", "--b\r\n\r\nx": "cut off",
		message(false, "a", "b"): "the batch has 2 parts", "--b\r\nContent-Type: multipart/mixed\r\n\r\n--b--": "with a boundary"} {
		p.want("POST /$batch", text, 400, want, kind...)
	}
	p.want("POST /$batch", "", 400, "with a boundary")
}

// Writers that read an entity and write it with its etag lose no change of another.
func TestWritersTogether(t *testing.T) {
	const writers, each = 8, 20
	p := start(t)
	const one = "/People(PartitionKey='p',RowKey='r')"
	var all errgroup.Group
	for range writers {
		all.Go(func() error {
			for done := 0; done < each; {
				r := httptest.NewRequest("GET", "https://acc.table.core.windows.net"+one, nil)
				r.Header.Set("Authorization", "Bearer good")
				read := httptest.NewRecorder()
				p.service.ServeHTTP(read, r)
				var e struct{ N int }
				if err := json.Unmarshal(read.Body.Bytes(), &e); err != nil {
					return err
				}
				r = httptest.NewRequest("MERGE", "https://acc.table.core.windows.net"+one, strings.NewReader(fmt.Sprintf(`{"N":%d}`, e.N+1)))
				r.Header.Set("Authorization", "Bearer good")
				r.Header.Set("If-Match", read.Header().Get("ETag"))
				written := httptest.NewRecorder()
				p.service.ServeHTTP(written, r)
				switch written.Code {
				case 204:
					done++
				case 412: // another one was first
				default:
					return fmt.Errorf("%d %s", written.Code, written.Body)
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	p.want("GET "+one, "", 200, fmt.Sprintf(`"N":%d}`, 1+writers*each))
}
