package table_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
)

// FuzzTables sends anything: the answer is never a 500.
func FuzzTables(f *testing.F) {
	f.Add("POST", "/Tables", "", "Accept", "application/json;odata=fullmetadata", []byte(`{"TableName":"Other"}`))
	f.Add("GET", "/People()", "$filter=N gt 0&$top=1&$select=N&NextPartitionKey=1!4!cA..", "Origin", "https://a.example", []byte{})
	f.Add("GET", "/People(PartitionKey='p',RowKey='r')", "sig=x&tn=people&spk=a&sp=r&se=2030&sv=2019-02-02", "Authorization", "", []byte{})
	f.Add("PUT", "/People(PartitionKey='p',RowKey='it''s')", "", "If-Match", "*", []byte(`{"A@odata.type":"Edm.Int64","A":"1"}`))
	f.Add("MERGE", "/People(PartitionKey='p',RowKey='r')", "$format=json", "X-HTTP-Method", "PUT", []byte(`{"B":null,"C":1e5}`))
	f.Add("POST", "/$batch", "", "Content-Type", "multipart/mixed; boundary=b", []byte(message(true,
		"POST /People HTTP/1.1\r\nContent-ID: 1\r\n\r\n"+`{"PartitionKey":"p","RowKey":"s"}`, "DELETE /People(PartitionKey='p',RowKey='r') HTTP/1.1\r\n\r\n")))
	f.Add("PUT", "/People", "comp=acl", "", "", []byte("<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier></SignedIdentifiers>"))
	f.Add("PUT", "/", "restype=service&comp=properties", "", "", []byte("<StorageServiceProperties><Cors/></StorageServiceProperties>"))
	f.Add("DELETE", "/Tables('People')", "", "Authorization", "SharedKeyLite acc:x", []byte{})
	p := start(f)
	f.Fuzz(func(t *testing.T, method, path, query, header, value string, body []byte) {
		r, err := http.NewRequest(method, "https://acc.table.core.windows.net/", bytes.NewReader(body))
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
