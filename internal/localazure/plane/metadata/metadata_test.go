package metadata

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ask(t *testing.T, method, url string) (int, any) {
	t.Helper()
	s := &Service{Authority: "https://127.0.0.1:8443"}
	r := httptest.NewRequest(method, url, nil)
	w := httptest.NewRecorder()
	s.Handler(r.URL.Path).ServeHTTP(w, r)
	var body any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return w.Code, body
}

// The endpoints have the host and the scheme of the client's request.
func TestEndpoints(t *testing.T) {
	for url, want := range map[string][2]string{
		"http://127.0.0.1:8080" + Path:                {"http://127.0.0.1:8080", "https://127.0.0.1:8443/"},
		"https://127.0.0.1:8443/Metadata/Endpoints/":  {"https://127.0.0.1:8443", "https://127.0.0.1:8443/"},
		"https://host.docker.internal:8443" + Path:    {"https://host.docker.internal:8443", "https://host.docker.internal:8443/"},
		"https://management.azure.com" + Path:         {"https://management.azure.com", "https://login.microsoftonline.com/"},
		"https://management.chinacloudapi.cn" + Path:  {"https://management.chinacloudapi.cn", "https://login.chinacloudapi.cn/"},
		"https://management.usgovcloudapi.net" + Path: {"https://management.usgovcloudapi.net", "https://login.microsoftonline.us/"},
	} {
		status, body := ask(t, http.MethodGet, url+"?api-version=2022-09-01")
		if status != http.StatusOK {
			t.Fatalf("%s: %d %v", url, status, body)
		}
		cloud := body.(map[string]any)
		got := [2]string{cloud["resourceManager"].(string), cloud["authentication"].(map[string]any)["loginEndpoint"].(string)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", url, diff)
		}
	}
}

func TestForms(t *testing.T) {
	if status, body := ask(t, http.MethodGet, "https://a"+Path+"?api-version=2019-05-01"); status != 200 || len(body.([]any)) != 6 ||
		body.([]any)[0].(map[string]any)["name"] != "AzurePublicCloud" {
		t.Errorf("2019: %d %v", status, body)
	}
	if status, body := ask(t, http.MethodGet, "https://a"+Path); status != 200 || len(body.([]any)) != 6 {
		t.Errorf("no version: %d %v", status, body)
	}
	if status, body := ask(t, http.MethodGet, "https://a"+Path+"?api-version=2015-01-01"); status != 200 ||
		body.(map[string]any)["graphEndpoint"] != "https://a" {
		t.Errorf("2015: %d %v", status, body)
	}
	if status, body := ask(t, http.MethodGet, "https://management.azure.com"+Path+"?api-version=2022-09-01"); status != 200 ||
		body.(map[string]any)["name"] != "AzureCloud" {
		t.Errorf("2022: %d %v", status, body)
	}
	if status, body := ask(t, http.MethodPost, "https://a"+Path); status != 405 {
		t.Errorf("POST: %d %v", status, body)
	}
	if new(Service).Handler("/metadata/instance") != nil {
		t.Error("another plane's path is answered")
	}
}
