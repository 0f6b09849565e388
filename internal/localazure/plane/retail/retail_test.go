package retail_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"kaz/internal/localazure/plane/retail"
)

type answer struct {
	Items []struct {
		Region  string  `json:"armRegionName"`
		Size    string  `json:"armSkuName"`
		SKU     string  `json:"skuName"`
		Product string  `json:"productName"`
		Price   float64 `json:"retailPrice"`
	}
	NextPageLink string
	Count        int
	Error        struct{ Message string }
}

func ask(t *testing.T, link string) (int, answer) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, link, nil)
	(&retail.Service{}).Handler(r.URL.Path).ServeHTTP(w, r)
	var a answer
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return w.Code, a
}

func filter(text string) string { return retail.Path + "?$filter=" + url.QueryEscape(text) }

// TestPrices checks the prices of one size: Spot machines cost less, Windows costs more.
func TestPrices(t *testing.T) {
	_, a := ask(t, filter("serviceName eq 'Virtual Machines' and armRegionName eq 'westeurope' and armSkuName eq 'Standard_D2s_v5'"))
	prices := map[string]float64{}
	for _, i := range a.Items {
		if i.Region != "westeurope" || i.Size != "Standard_D2s_v5" {
			t.Errorf("%+v", i)
		}
		prices[i.Product+"/"+i.SKU] = i.Price
	}
	const linux, windows = "Virtual Machines DSv5 Series", "Virtual Machines DSv5 Series Windows"
	onDemand := prices[linux+"/D2s v5"]
	if len(prices) != 6 || a.Count != 6 || onDemand == 0 || prices[linux+"/D2s v5 Spot"] >= onDemand || prices[windows+"/D2s v5"] <= onDemand {
		t.Errorf("prices %v", prices)
	}
}

// TestPages checks that the pages have all prices once.
func TestPages(t *testing.T) {
	seen := map[string]bool{}
	pages := 0
	for link := filter("armRegionName eq 'westeurope'"); link != ""; pages++ {
		code, a := ask(t, link)
		if code != http.StatusOK || len(a.Items) == 0 || len(a.Items) > 100 {
			t.Fatalf("%s: %d, %d items", link, code, len(a.Items))
		}
		for _, i := range a.Items {
			key := i.Product + "/" + i.SKU
			if seen[key] {
				t.Errorf("%s twice", key)
			}
			seen[key] = true
		}
		link = a.NextPageLink
	}
	if pages < 2 {
		t.Errorf("%d pages", pages)
	}
}

// TestBadQueries checks that each wrong query is an error that names it.
func TestBadQueries(t *testing.T) {
	for link, want := range map[string]string{
		filter("contains(meterName, 'Spot')"): "only FIELD eq 'VALUE'", filter("price eq '1'"): `no field "price"`,
		retail.Path + "?$skip=x": `$skip "x"`,
	} {
		if code, a := ask(t, link); code != http.StatusBadRequest || !strings.Contains(a.Error.Message, want) {
			t.Errorf("%s: %d %s, want %s", link, code, a.Error.Message, want)
		}
	}
	if (&retail.Service{}).Handler("/subscriptions") != nil {
		t.Error("answers another path")
	}
}
