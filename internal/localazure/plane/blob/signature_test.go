package blob_test

import (
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/storage"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/blob"
	"kaz/internal/localazure/providers"
)

// signing is a local Azure with an account with a known key, and without tokens.
type signing struct {
	*testing.T
	emulator *core.Emulator
	service  *blob.Service
	key      string
}

func startSigning(t *testing.T) *signing {
	t.Helper()
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	s := &signing{T: t, emulator: e, service: &blob.Service{Azure: e,
		Authenticate: func(string, ...string) (*behaviour.Principal, error) {
			return &behaviour.Principal{ObjectID: "me"}, nil
		}}}
	group := azure.GroupID(core.DefaultSubscription, "rg")
	account := group.Resource("Microsoft.Storage/storageAccounts", "account1")
	if err := e.Do(func(w behaviour.World) error {
		if err := w.Apply(behaviour.Itself(), group, behaviour.Object{"location": "westeurope"}); err != nil {
			return err
		}
		if err := w.Apply(behaviour.Itself(), account, behaviour.Object{"location": "westeurope", "kind": "StorageV2",
			"sku": behaviour.Object{"name": "Standard_LRS"}}); err != nil {
			return err
		}
		doc, _ := w.Get(account)
		s.key = storage.Keys(doc)[0]
		return w.Apply(behaviour.Itself(), account.Child("blobServices", "default").Child("containers", "docs"), behaviour.Object{})
	}); err != nil {
		t.Fatal(err)
	}
	s.want("PUT", "https://account1.blob.core.windows.net/docs/a", 201, "")
	return s
}

// want sends a request with a token, if the address has no signature, and returns the content of the reply.
func (s *signing) want(method, address string, status int, code string) string {
	s.Helper()
	r := httptest.NewRequest(method, address, strings.NewReader("text"))
	r.Header.Set("x-ms-blob-type", "BlockBlob")
	if !strings.Contains(address, "sig=") {
		r.Header.Set("Authorization", "Bearer token")
	}
	w := httptest.NewRecorder()
	s.service.ServeHTTP(w, r)
	if w.Code != status || w.Header().Get("x-ms-error-code") != code {
		s.Errorf("%s %s: %d %s, want %d %s", method, address, w.Code, w.Header().Get("x-ms-error-code"), status, code)
	}
	return w.Body.String()
}

// A shared access signature allows what its letters say, for the container or blob that it names, until it ends.
func TestSignatures(t *testing.T) {
	const failed, permission = "AuthenticationFailed", "AuthorizationPermissionMismatch"
	synctest.Test(t, func(t *testing.T) {
		s := startSigning(t)
		hour := func(n int) string { return time.Now().Add(time.Duration(n) * time.Hour).UTC().Format(time.RFC3339) }
		for _, x := range []struct {
			name, resource, values, request string
			status                          int
			code                            string
		}{
			{"read of the blob", "/docs/a", "sr=b&sp=r", "GET /docs/a?", 200, ""},
			{"read of another blob", "/docs/a", "sr=b&sp=r", "GET /docs/b?", 403, failed},
			{"write with the right to read", "/docs/a", "sr=b&sp=r", "PUT /docs/a?", 403, permission},
			{"write", "/docs/a", "sr=b&sp=rw", "PUT /docs/a?", 201, ""},
			{"read in the container", "/docs", "sr=c&sp=rl", "GET /docs/a?", 200, ""},
			{"list", "/docs", "sr=c&sp=rl", "GET /docs?restype=container&comp=list&", 200, ""},
			{"list with the right to read", "/docs", "sr=c&sp=r", "GET /docs?restype=container&comp=list&", 403, permission},
			{"deletion of the container", "/docs", "sr=c&sp=d", "DELETE /docs?restype=container&", 403, "AuthorizationFailure"},
			{"another blob in the container of the blob", "/docs/a", "sr=b&sp=l", "GET /docs?restype=container&comp=list&", 403, failed},
			{"unknown kind", "/docs/a", "sr=d&sp=r", "GET /docs/a?", 403, failed},
			{"later start", "/docs/a", "sr=b&sp=r&st=" + hour(1), "GET /docs/a?", 403, failed},
			{"past end", "/docs/a", "sr=b&sp=r&se=" + hour(0), "GET /docs/a?", 403, failed},
			{"other address", "/docs/a", "sr=b&sp=r&sip=10.0.0.1", "GET /docs/a?", 403, "AuthorizationSourceIPMismatch"},
			{"no such blob", "/docs/none", "sr=b&sp=r", "GET /docs/none?", 404, "BlobNotFound"},
		} {
			for _, version := range []string{"2015-04-05", "2018-11-09", "2024-11-04"} {
				v, err := url.ParseQuery(x.values + "&sv=" + version)
				if err != nil {
					t.Fatal(err)
				}
				if v.Get("se") == "" {
					v.Set("se", hour(2))
				}
				v.Set("sig", storage.Sign(s.key, storage.BlobSASText("/blob/account1"+x.resource, v)))
				method, path, _ := strings.Cut(x.request, " ")
				t.Logf("%s, %s", x.name, version)
				s.want(method, "https://account1.blob.core.windows.net"+path+v.Encode(), x.status, x.code)
			}
		}
	})
}

// The signature of an account allows operations on containers, too.
func TestSignatureOfAnAccount(t *testing.T) {
	s := startSigning(t)
	for _, x := range []struct {
		values, request string
		status          int
		code            string
	}{
		{"ss=bf&srt=co&sp=rc", "GET /docs/a?", 200, ""},
		{"ss=b&srt=c&sp=c", "PUT /made?restype=container&", 201, ""},
		{"ss=b&srt=c&sp=r", "GET /docs/a?", 403, "AuthorizationResourceTypeMismatch"},
		{"ss=f&srt=o&sp=r", "GET /docs/a?", 403, "AuthorizationServiceMismatch"},
		{"ss=b&srt=o&sp=d", "GET /docs/a?", 403, "AuthorizationPermissionMismatch"},
	} {
		v, err := url.ParseQuery(x.values + "&sv=2024-11-04&se=" + time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		if err != nil {
			t.Fatal(err)
		}
		v.Set("sig", storage.Sign(s.key, storage.AccountSASText("account1", v)))
		method, path, _ := strings.Cut(x.request, " ")
		s.want(method, "https://account1.blob.core.windows.net"+path+v.Encode(), x.status, x.code)
		v.Set("sig", storage.Sign(s.key, "other"))
		s.want(method, "https://account1.blob.core.windows.net"+path+v.Encode(), 403, "AuthenticationFailed")
	}
}

// TestConsoles checks the blobs with the console output of a machine. They are in the account of its boot diagnostics.
// Clients read them with the signature that Azure Resource Manager gives.
func TestConsoles(t *testing.T) {
	const id = "12345678-1234-1234-1234-123456789abc"
	for _, x := range []struct{ name, account, address string }{
		{"managed", "", "https://md-123456789abc.z1.blob.storage.azure.net"},
		{"account of the user", "https://account1.blob.core.windows.net/", "https://account1.blob.core.windows.net"},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startSigning(t)
				machine := azure.GroupID(core.DefaultSubscription, "rg").Resource("Microsoft.Compute/virtualMachines", "Web-Server01")
				diagnostics := behaviour.Object{"enabled": true}
				if x.account != "" {
					diagnostics["storageUri"] = x.account
				}
				var answer any
				if err := s.emulator.Do(func(w behaviour.World) (err error) {
					w.Put(machine, behaviour.Object{"location": "westeurope", "properties": behaviour.Object{"vmId": id,
						"diagnosticsProfile": behaviour.Object{"bootDiagnostics": diagnostics}}})
					answer, err = w.Act(behaviour.Itself(), machine, "retrieveBootDiagnosticsData", nil)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				blobs, _ := answer.(behaviour.Object)
				log, screenshot := behaviour.Text(blobs, "serialConsoleLogBlobUri"), behaviour.Text(blobs, "consoleScreenshotBlobUri")
				plain, _, _ := strings.Cut(log, "?")
				if want := x.address + "/bootdiagnostics-webserver-" + id + "/Web-Server01." + id + ".serialconsole.log"; plain != want {
					t.Fatalf("address %s, want %s", plain, want)
				}
				if host := strings.TrimPrefix(x.address, "https://"); !s.service.Answers(host) {
					t.Errorf("%s is not answered", host)
				}
				s.want("GET", log, 404, "BlobNotFound") // the machine is a document
				s.service.Console = func(id azure.ID) (io.ReadCloser, error) {
					if !id.Equal(machine) {
						return nil, fs.ErrNotExist
					}
					return io.NopCloser(strings.NewReader("login: ")), nil
				}
				if text := s.want("GET", log, 200, ""); text != "login: " {
					t.Errorf("console %q", text)
				}
				s.want("HEAD", log, 200, "")
				s.want("GET", screenshot, 404, "BlobNotFound")
				s.want("PUT", log, http.StatusForbidden, "AuthorizationPermissionMismatch")
				status, code := 200, ""
				if x.account == "" {
					status, code = 403, "AuthorizationFailure"
				}
				s.want("GET", plain, status, code) // with a token
				<-time.After(2 * time.Hour)
				s.want("GET", log, 403, "AuthenticationFailed")
			})
		})
	}
}
