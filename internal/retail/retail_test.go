package retail_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/retail"
)

// TestPrices checks that all pages of one size in one region are read.
func TestPrices(t *testing.T) {
	var filters []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		filters = append(filters, r.URL.Query().Get("$filter"))
		next := ""
		if r.URL.Query().Get("$skip") == "" {
			next = "http://" + r.Host + "/api/retail/prices?$skip=1"
		}
		fmt.Fprintf(w, `{"Items":[{"armSkuName":"Standard_D2s_v5","retailPrice":0.1,"unknown":true}],"NextPageLink":%q}`, next)
	}))
	defer server.Close()
	items, err := retail.Client{Source: server.URL + "/api/retail/prices"}.Prices(t.Context(), "westeurope", "Standard_D2s_v5")
	if err != nil || len(items) != 2 || items[1].Size != "Standard_D2s_v5" || items[1].RetailPrice != .1 {
		t.Errorf("%v, %v", items, err)
	}
	for _, part := range []string{"armRegionName eq 'westeurope'", "armSkuName eq 'Standard_D2s_v5'", "priceType eq 'Consumption'"} {
		if !strings.Contains(filters[0], part) {
			t.Errorf("filter %q lacks %q", filters[0], part)
		}
	}
}

// TestBadAnswers checks that each wrong answer is an error that says what is wrong.
func TestBadAnswers(t *testing.T) {
	for body, want := range map[string]string{
		"503":                     "503 Service Unavailable",
		"<html>":                  "is no list of prices",
		`{"NextPageLink":"?x=y"}`: "more than 20 pages",
		`{"NextPageLink":"https://elsewhere.example/"}`: "to another host, elsewhere.example",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if body == "503" {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			fmt.Fprint(w, body)
		}))
		_, err := retail.Client{Source: server.URL}.Prices(t.Context(), "westeurope", "Standard_D2s_v5")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
		server.Close()
	}
}

// TestFile checks the price file, for users that cannot reach the service or have other prices.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("prices.json", `{"Items":[{"armSkuName":"Standard_D2s_v5"}]}`)
	items, err := retail.Client{Source: good}.Prices(t.Context(), "", "")
	if err != nil || len(items) != 1 || items[0].Size != "Standard_D2s_v5" {
		t.Errorf("%v, %v", items, err)
	}
	if err := retail.Check(good); err != nil {
		t.Error(err)
	}
	empty := write("empty.json", `{}`)
	if items, err := (retail.Client{Source: empty}).Prices(t.Context(), "", ""); err == nil || len(items) > 0 {
		t.Errorf("a file without items: %v, %v", items, err)
	}
	for source, want := range map[string]string{
		empty: "has no Items", write("list.json", `[]`): "cannot unmarshal",
		"/nowhere": "no such file", "https://": "has no host", "https://[": "missing ']'",
	} {
		if err := retail.Check(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}
