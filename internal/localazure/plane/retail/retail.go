// Package retail is the service with the retail prices of machines, for programs that ask for sizes in regions. Its prices
// are invented: they follow from cores and memory, and are equal in all regions. Larger machines therefore cost more, and
// Spot machines less. Layer L2.
//
// Source of the format: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
package retail

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"kaz/internal/localazure/core/catalog"
)

// Path is the path of the service.
const Path = "/api/retail/prices"

// The invented prices in dollars an hour: of a vCPU, of a GiB, and the addition for a vCPU with Windows. A Spot or
// low-priority machine costs the part spot or lowPriority of the price.
const (
	perCPU, perGiB, perWindowsCPU = 0.0400, 0.0050, 0.0460
	spot, lowPriority             = 0.2, 0.4
)

// pageSize is the number of entries of a page, as in Azure.
const pageSize = 100

// Service answers the requests.
type Service struct{}

// Handler returns the handler of the service's path.
func (s *Service) Handler(path string) http.Handler {
	if !strings.EqualFold(path, Path) {
		return nil
	}
	return s
}

// item is an entry of the answer.
type item struct {
	CurrencyCode  string  `json:"currencyCode"`
	RetailPrice   float64 `json:"retailPrice"`
	UnitPrice     float64 `json:"unitPrice"`
	Region        string  `json:"armRegionName"`
	MeterName     string  `json:"meterName"`
	ProductName   string  `json:"productName"`
	SKUName       string  `json:"skuName"`
	ServiceName   string  `json:"serviceName"`
	ServiceFamily string  `json:"serviceFamily"`
	UnitOfMeasure string  `json:"unitOfMeasure"`
	Type          string  `json:"type"`
	Size          string  `json:"armSkuName"`
}

// field returns the field of a filter.
func (i item) field(name string) (value string, known bool) {
	switch strings.ToLower(name) {
	case "armregionname":
		return i.Region, true
	case "armskuname":
		return i.Size, true
	case "servicename":
		return i.ServiceName, true
	case "servicefamily":
		return i.ServiceFamily, true
	case "pricetype", "type":
		return i.Type, true
	case "productname":
		return i.ProductName, true
	case "skuname":
		return i.SKUName, true
	case "metername":
		return i.MeterName, true
	case "currencycode":
		return i.CurrencyCode, true
	}
	return "", false
}

// ServeHTTP answers with one page of the prices that the filter selects.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		fail(w, http.StatusMethodNotAllowed, "the retail prices can only be read")
		return
	}
	query := r.URL.Query()
	wanted, err := parse(query.Get("$filter"))
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	skip := 0
	if text := query.Get("$skip"); text != "" {
		if skip, err = strconv.Atoi(text); err != nil || skip < 0 {
			fail(w, http.StatusBadRequest, fmt.Sprintf("$skip %q: must be a number", text))
			return
		}
	}
	all := find(wanted)
	page := all[min(skip, len(all)):min(skip+pageSize, len(all))]
	answer := map[string]any{
		"BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail",
		"Items": page, "NextPageLink": nil, "Count": len(page),
	}
	if skip+pageSize < len(all) {
		answer["NextPageLink"] = next(r, query, skip+pageSize)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(answer) // the client is gone
}

func next(r *http.Request, query url.Values, skip int) string {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	query.Set("$skip", strconv.Itoa(skip))
	return (&url.URL{Scheme: scheme, Host: r.Host, Path: Path, RawQuery: query.Encode()}).String()
}

func fail(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"Error": map[string]string{"Code": http.StatusText(code), "Message": message}})
}

var (
	conjunction = regexp.MustCompile(`(?i)\s+and\s+`)
	equality    = regexp.MustCompile(`(?i)^\s*(\w+)\s+eq\s+'((?:[^']|'')*)'\s*$`)
)

// parse reads a filter: equalities that all must hold.
func parse(filter string) (map[string]string, error) {
	wanted := map[string]string{}
	if strings.TrimSpace(filter) == "" {
		return wanted, nil
	}
	for _, part := range conjunction.Split(filter, -1) {
		m := equality.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("$filter %q: only FIELD eq 'VALUE', combined by and, is implemented here", part)
		}
		if _, known := (item{}).field(m[1]); !known {
			return nil, fmt.Errorf("$filter: there is no field %q", m[1])
		}
		wanted[strings.ToLower(m[1])] = strings.ReplaceAll(m[2], "''", "'")
	}
	return wanted, nil
}

// find returns the prices with the given fields. As in Azure, letter case counts in values.
func find(wanted map[string]string) []item {
	all := []item{}
	for _, region := range catalog.Regions() {
		if excluded(wanted, region.Name, "armregionname") {
			continue
		}
		for _, size := range catalog.Sizes() {
			if excluded(wanted, size.Name, "armskuname") {
				continue
			}
			for _, i := range pricesOf(region.Name, size) {
				if i.has(wanted) {
					all = append(all, i)
				}
			}
		}
	}
	return all
}

// excluded reports whether a filter wants another value of a field. The names of fields in a filter are in lower case.
func excluded(wanted map[string]string, value, field string) bool {
	want, given := wanted[field]
	return given && want != value
}

func (i item) has(wanted map[string]string) bool {
	for name, want := range wanted {
		if have, _ := i.field(name); have != want {
			return false
		}
	}
	return true
}

// pricesOf returns the prices of a size: of Linux and Windows, on demand, of Spot machines and of low priority.
func pricesOf(region string, size catalog.Size) []item {
	name := strings.ReplaceAll(strings.TrimPrefix(size.Name, "Standard_"), "_", " ")
	product := "Virtual Machines " + strings.TrimSuffix(strings.TrimPrefix(size.Family, "standard"), "Family") + " Series"
	linux := float64(size.VCPUs)*perCPU + size.MemoryGiB*perGiB
	var all []item
	for _, system := range []struct {
		suffix string
		hourly float64
	}{{"", linux}, {" Windows", linux + float64(size.VCPUs)*perWindowsCPU}} {
		for _, offer := range []struct {
			suffix string
			part   float64
		}{{"", 1}, {" Spot", spot}, {" Low Priority", lowPriority}} {
			const precision = 1e6
			price := math.Round(system.hourly*offer.part*precision) / precision
			all = append(all, item{
				CurrencyCode: "USD", RetailPrice: price, UnitPrice: price, Region: region, MeterName: name + offer.suffix,
				ProductName: product + system.suffix, SKUName: name + offer.suffix, ServiceName: "Virtual Machines",
				ServiceFamily: "Compute", UnitOfMeasure: "1 Hour", Type: "Consumption", Size: size.Name,
			})
		}
	}
	return all
}
