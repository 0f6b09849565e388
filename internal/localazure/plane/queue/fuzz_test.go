package queue_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// FuzzQueues sends anything: the answer is never a 500.
func FuzzQueues(f *testing.F) {
	f.Add("POST", "/orders/messages", "messagettl=-1", "x-ms-meta-a", "b",
		[]byte("<QueueMessage><MessageText>dGV4dA==</MessageText></QueueMessage>"))
	f.Add("GET", "/orders/messages", "numofmessages=32&visibilitytimeout=1", "", "", []byte{})
	f.Add("GET", "/orders/messages", "peekonly=true", "Origin", "https://a.example", []byte{})
	f.Add("PUT", "/orders/messages/1", "popreceipt=x&visibilitytimeout=0", "", "", []byte("<QueueMessage/>"))
	f.Add("PUT", "/orders", "comp=acl", "", "", []byte("<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier></SignedIdentifiers>"))
	f.Add("PUT", "/", "restype=service&comp=properties", "", "", []byte("<StorageServiceProperties><Cors/></StorageServiceProperties>"))
	f.Add("OPTIONS", "/orders", "", "Origin", "null", []byte{})
	f.Add("PUT", "/orders/", "comp=metadata", "x-ms-meta-\xff", "\xff", []byte{})
	f.Add("DELETE", "/orders/messages/", "sig=x&se=2030&sp=rw", "", "", []byte{})
	p := start(f, "")
	f.Fuzz(func(t *testing.T, method, path, query, header, value string, body []byte) {
		r, err := http.NewRequest(method, "https://acc.queue.core.windows.net/", bytes.NewReader(body))
		if err != nil || path != "" && path[0] != '/' {
			return // net/http lets no such request through
		}
		r.URL.Path, r.URL.RawQuery = path, query
		r.Header.Set("Authorization", "Bearer good")
		r.Header.Set(header, value)
		w := httptest.NewRecorder()
		p.service.ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != http.StatusNotImplemented || w.Code < 200 {
			t.Fatalf("%s %q?%s %s %q: %d %s", method, path, query, header, value, w.Code, w.Body)
		}
	})
}
