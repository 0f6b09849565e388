package queue_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/account"
	"kaz/internal/localazure/plane/queue"
	"kaz/internal/localazure/providers"
)

var accountID = azure.GroupID(core.DefaultSubscription, "rg").Resource(storage.AccountType, "acc")

// me is the principal that has the token "good".
const me = "11111111-2222-3333-4444-555555555555"

// plane is a local Azure with the account "acc" and its queue "orders".
type plane struct {
	testing.TB
	azure   *core.Emulator
	service *queue.Service
	key     string
}

func start(t testing.TB, dir string) *plane {
	t.Helper()
	return startWith(t, dir, core.Options{})
}

func startWith(t testing.TB, dir string, o core.Options) *plane {
	t.Helper()
	o.Providers = providers.All()
	e, err := core.New(o)
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{TB: t, azure: e}
	if err := e.Do(func(w behaviour.World) error {
		if err := w.Apply(behaviour.Itself(), azure.GroupID(core.DefaultSubscription, "rg"),
			behaviour.Object{"location": "westeurope"}); err != nil {
			return err
		}
		if err := w.Apply(behaviour.Itself(), accountID, behaviour.Object{"location": "westeurope", "kind": "StorageV2",
			"sku": behaviour.Object{"name": "Standard_RAGRS"}}); err != nil {
			return err
		}
		doc, _ := w.Get(accountID)
		p.key = storage.Keys(doc)[0]
		return w.Apply(behaviour.Itself(), accountID.Child("queueServices", "default").Child("queues", "orders"), behaviour.Object{})
	}); err != nil {
		t.Fatal(err)
	}
	p.serve(dir)
	return p
}

// serve starts the service again, as after the end of its process.
func (p *plane) serve(dir string) {
	p.Helper()
	p.service = &queue.Service{Azure: p.azure, Tokens: account.Tokens{
		Authenticate: func(token string, _ ...string) (*behaviour.Principal, error) {
			if token != "good" {
				return nil, errors.New("no token")
			}
			return &behaviour.Principal{ObjectID: me}, nil
		}}}
	if dir == "" {
		return
	}
	if err := p.service.Load(dir, slog.New(slog.DiscardHandler)); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = p.service.Close() })
}

// want sends a request with a token, unless its address has a signature. It returns the reply.
func (p *plane) want(method, path, body string, status int, code string, headers ...string) *httptest.ResponseRecorder {
	p.Helper()
	host := "https://acc.queue.core.windows.net"
	if rest, other := strings.CutPrefix(path, "secondary:"); other {
		host, path = "https://acc-secondary.queue.core.windows.net", rest
	}
	r := httptest.NewRequest(method, host+path, strings.NewReader(body))
	if !strings.Contains(path, "sig=") {
		r.Header.Set("Authorization", "Bearer good")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	p.service.ServeHTTP(w, r)
	if w.Code != status || w.Header().Get("x-ms-error-code") != code {
		p.Errorf("%s %s: %d %q, want %d %q: %s", method, path, w.Code, w.Header().Get("x-ms-error-code"), status, code, w.Body)
	}
	return w
}

// message is a message in a reply.
type message struct {
	ID      string `xml:"MessageId"`
	Expires string `xml:"ExpirationTime"`
	Receipt string `xml:"PopReceipt"`
	Visible string `xml:"TimeNextVisible"`
	Taken   int    `xml:"DequeueCount"`
	Text    string `xml:"MessageText"`
}

func (p *plane) messages(method, path, body string, status int) []message {
	p.Helper()
	var list struct {
		Messages []message `xml:"QueueMessage"`
	}
	w := p.want(method, path, body, status, "")
	if err := xml.Unmarshal(w.Body.Bytes(), &list); err != nil {
		p.Errorf("%s %s: %v in %s", method, path, err, w.Body)
	}
	return list.Messages
}

// put sends a message, whose text must be XML.
func (p *plane) put(path, text string) message {
	p.Helper()
	got := p.messages("POST", path, "<QueueMessage><MessageText>"+text+"</MessageText></QueueMessage>", 201)
	if len(got) != 1 {
		p.Fatalf("POST %s: %d messages", path, len(got))
	}
	return got[0]
}

// get returns the texts of the messages that a request hands out, each with how often that happened.
func (p *plane) get(path string) string {
	p.Helper()
	var all []string
	for _, m := range p.messages("GET", path, "", 200) {
		all = append(all, fmt.Sprintf("%s %d", m.Text, m.Taken))
	}
	return strings.Join(all, ", ")
}

// TestVisibility checks when messages are seen, in which order, and until when: a message that was handed out is hidden for a time, one
// that expires is gone.
func TestVisibility(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, "")
		p.put("/orders/messages?visibilitytimeout=60", "late")
		p.put("/orders/messages", "first")
		p.put("/orders/messages?messagettl=100", "ends")
		forever := p.put("/orders/messages?messagettl=-1", "stays")
		if forever.Expires != "Fri, 31 Dec 9999 23:59:59 GMT" || forever.Receipt == "" {
			t.Errorf("a message without an end: %+v", forever)
		}
		for _, step := range []struct {
			wait int
			path string
			want string
		}{
			{0, "?peekonly=true&numofmessages=32", "first 0, ends 0, stays 0"},
			{0, "?numofmessages=2", "first 1, ends 1"},
			{0, "", "stays 1"},
			{0, "?numofmessages=32", ""},
			{29, "?peekonly=true&numofmessages=32", ""},
			{1, "?visibilitytimeout=1&numofmessages=32", "first 2, ends 2, stays 2"},
			{30, "?numofmessages=32", "late 1, first 3, ends 3, stays 3"},
			{40, "?peekonly=true&numofmessages=32", "late 1, first 3, stays 3"},
			{7 * 24 * 3600, "?numofmessages=32", "stays 4"},
		} {
			<-time.After(time.Duration(step.wait) * time.Second)
			if got := p.get("/orders/messages" + step.path); got != step.want {
				t.Errorf("after %d s more, %q: %q, want %q", step.wait, step.path, got, step.want)
			}
		}
		if got := p.want("GET", "/orders?comp=metadata", "", 200, "").Header().Get("x-ms-approximate-messages-count"); got != "1" {
			t.Errorf("%s messages are left, want 1", got)
		}
	})
}

// TestReceipts checks that the last pop receipt of a message alone changes and deletes it.
func TestReceipts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, "")
		sent := p.put("/orders/messages?messagettl=3600", "one")
		address := "/orders/messages/" + sent.ID + "?popreceipt="
		got := p.messages("GET", "/orders/messages", "", 200)[0]
		if got.ID != sent.ID || got.Receipt == sent.Receipt {
			t.Fatalf("sent %+v, got %+v", sent, got)
		}
		p.want("DELETE", address+url.QueryEscape(sent.Receipt), "", 400, "PopReceiptMismatch")
		p.want("PUT", address+url.QueryEscape(sent.Receipt)+"&visibilitytimeout=1", "", 400, "PopReceiptMismatch")
		p.want("PUT", address+url.QueryEscape(got.Receipt), "", 400, "MissingRequiredQueryParameter")
		p.want("PUT", address+url.QueryEscape(got.Receipt)+"&visibilitytimeout=3601", "", 400, "InvalidQueryParameterValue")
		p.want("PUT", address+url.QueryEscape(got.Receipt)+"&visibilitytimeout=604801", "", 400, "OutOfRangeQueryParameterValue")
		changed := p.want("PUT", address+url.QueryEscape(got.Receipt)+"&visibilitytimeout=10",
			"<QueueMessage><MessageText>two &amp; &lt;more&gt;</MessageText></QueueMessage>", 204, "").Header()
		if at := changed.Get("x-ms-time-next-visible"); at != time.Now().Add(10*time.Second).UTC().Format(http.TimeFormat) {
			t.Errorf("visible at %s", at)
		}
		<-time.After(10 * time.Second)
		if got := p.get("/orders/messages?peekonly=true"); got != "two & <more> 1" {
			t.Errorf("after the change: %q", got)
		}
		kept := p.want("PUT", address+url.QueryEscape(changed.Get("x-ms-popreceipt"))+"&visibilitytimeout=0", "", 204, "").Header()
		if got := p.get("/orders/messages?peekonly=true"); got != "two & <more> 1" {
			t.Errorf("after a change of the time alone: %q", got)
		}
		p.want("DELETE", "/orders/messages/"+sent.ID, "", 400, "MissingRequiredQueryParameter")
		p.want("DELETE", address+url.QueryEscape(kept.Get("x-ms-popreceipt")), "", 204, "")
		p.want("DELETE", address+url.QueryEscape(kept.Get("x-ms-popreceipt")), "", 404, "MessageNotFound")
	})
}

// TestLimits checks what Azure refuses, with its codes.
func TestLimits(t *testing.T) {
	p := start(t, "")
	text := func(n int) string {
		return "<QueueMessage><MessageText>" + strings.Repeat("x", n) + "</MessageText></QueueMessage>"
	}
	for _, x := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/orders/messages", text(64 << 10), 201, ""},
		{"POST", "/orders/messages", text(64<<10 + 1), 413, "RequestBodyTooLarge"},
		{"POST", "/orders/messages", text(1 << 20), 413, "RequestBodyTooLarge"},
		{"POST", "/orders/messages", text(0), 201, ""},
		{"POST", "/orders/messages", "<QueueMessage/>", 400, "MissingRequiredXmlNode"},
		{"POST", "/orders/messages", "<QueueMessage><MessageText>\xff</MessageText></QueueMessage>", 400, "InvalidXmlDocument"},
		{"POST", "/orders/messages", "x", 400, "InvalidXmlDocument"},
		{"POST", "/orders/messages?messagettl=0", text(1), 400, "InvalidQueryParameterValue"},
		{"POST", "/orders/messages?messagettl=-2", text(1), 400, "OutOfRangeQueryParameterValue"},
		{"POST", "/orders/messages?messagettl=5&visibilitytimeout=5", text(1), 400, "InvalidQueryParameterValue"},
		{"POST", "/orders/messages?visibilitytimeout=604801", text(1), 400, "OutOfRangeQueryParameterValue"},
		{"POST", "/orders/messages?visibilitytimeout=x", text(1), 400, "InvalidQueryParameterValue"},
		{"GET", "/orders/messages?numofmessages=0", "", 400, "OutOfRangeQueryParameterValue"},
		{"GET", "/orders/messages?numofmessages=33", "", 400, "OutOfRangeQueryParameterValue"},
		{"GET", "/orders/messages?visibilitytimeout=0", "", 400, "OutOfRangeQueryParameterValue"},
		{"GET", "/none/messages", "", 404, "QueueNotFound"},
		{"PUT", "/ab", "", 400, "OutOfRangeInput"},
		{"PUT", "/" + strings.Repeat("a", 64), "", 400, "OutOfRangeInput"},
		{"PUT", "/Orders", "", 400, "InvalidResourceName"},
		{"PUT", "/or--ders", "", 400, "InvalidResourceName"},
		{"DELETE", "/none", "", 404, "QueueNotFound"},
		{"GET", "/?comp=list&maxresults=0", "", 400, "OutOfRangeQueryParameterValue"},
		{"GET", "/?restype=service&comp=stats", "", 400, "InvalidQueryParameterValue"},
		{"GET", "secondary:/?restype=service&comp=stats", "", 200, ""},
		{"PUT", "secondary:/new", "", 403, "InsufficientAccountPermissions"},
		{"GET", "/orders/what", "", 501, "NotImplemented"},
	} {
		p.want(x.method, x.path, x.body, x.status, x.code)
	}
}

// TestQueuesAreDocuments checks that queues of the data plane and of Azure Resource Manager are the same, and that a queue that is made
// again has no message of the earlier one.
func TestQueuesAreDocuments(t *testing.T) {
	p := start(t, "")
	p.want("PUT", "/orders", "", 204, "")
	p.want("PUT", "/orders", "", 409, "QueueAlreadyExists", "x-ms-meta-team", "a")
	p.want("PUT", "/orders?comp=metadata", "", 204, "", "x-ms-meta-team", "a")
	p.want("PUT", "/orders", "", 204, "", "x-ms-meta-team", "a")
	id := accountID.Child("queueServices", "default").Child("queues", "orders")
	do := func(f func(w behaviour.World) error) {
		t.Helper()
		if err := p.azure.Do(f); err != nil {
			t.Fatal(err)
		}
	}
	do(func(w behaviour.World) error {
		view, there := w.View(id)
		if !there || behaviour.Text(view, "properties.metadata.team") != "a" || view["$made"] != nil {
			t.Errorf("Azure Resource Manager shows %v", view)
		}
		return nil
	})
	for _, gone := range []azure.ID{id, accountID} {
		p.put("/orders/messages", "old")
		do(func(w behaviour.World) error { return w.Remove(behaviour.Itself(), gone) })
		do(func(w behaviour.World) error {
			if gone == accountID {
				if err := w.Apply(behaviour.Itself(), accountID, behaviour.Object{"location": "westeurope", "kind": "StorageV2",
					"sku": behaviour.Object{"name": "Standard_LRS"}}); err != nil {
					return err
				}
			}
			return w.Apply(behaviour.Itself(), id, behaviour.Object{})
		})
		if got := p.get("/orders/messages"); got != "" {
			t.Errorf("%s was deleted and made again, and the queue has %q", gone.Name(), got)
		}
	}
	p.want("PUT", "/second", "", 201, "", "x-ms-meta-a", "b")
	list := p.want("GET", "/?comp=list&include=metadata&maxresults=1&marker=second", "", 200, "").Body.String()
	if !strings.Contains(list, "<Queue><Name>second</Name><Metadata><a>b</a></Metadata></Queue>") {
		t.Errorf("the list is %s", list)
	}
	if list := p.want("GET", "/?comp=list&maxresults=1", "", 200, "").Body.String(); !strings.Contains(list, "<NextMarker>second<") {
		t.Errorf("the page is %s", list)
	}
	p.want("DELETE", "/orders", "", 204, "")
	do(func(w behaviour.World) error {
		if _, there := w.Get(id); there {
			t.Error("the deleted queue is there")
		}
		return nil
	})
}

// TestKept checks that a message that was acknowledged is there after the process was killed, with the receipt that its reader has.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "queues")
	p := start(t, dir)
	for _, text := range []string{"one", "two", "three"} {
		p.put("/orders/messages", text)
	}
	taken := p.messages("GET", "/orders/messages?visibilitytimeout=3600", "", 200)[0]
	gone := p.messages("GET", "/orders/messages", "", 200)[0]
	p.want("DELETE", "/orders/messages/"+gone.ID+"?popreceipt="+url.QueryEscape(gone.Receipt), "", 204, "")
	p.serve(dir)
	if got := p.get("/orders/messages?numofmessages=32"); got != "three 1" {
		t.Errorf("after a restart: %q", got)
	}
	p.want("DELETE", "/orders/messages/"+taken.ID+"?popreceipt="+url.QueryEscape(taken.Receipt), "", 204, "")
	p.want("DELETE", "/orders/messages", "", 204, "")
	p.serve(dir)
	p.want("GET", "/orders?comp=metadata", "", 200, "")
	if got := p.get("/orders/messages?numofmessages=32"); got != "" {
		t.Errorf("after all were deleted: %q", got)
	}
}
