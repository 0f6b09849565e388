package compute_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

const thousand = 1000

// BenchmarkListThousandInstances reads all pages of a scale set of 1,000 instances
// with their instance views, over HTTPS.
func BenchmarkListThousandInstances(b *testing.B) {
	w := newSubscription(b, core.Options{})
	w.scaleSet(model{capacity: thousand})
	server := httptest.NewUnstartedServer(w.Emulator)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := server.Client()
	bytes := int64(0)
	for b.Loop() {
		url := server.URL + set + "/virtualMachines?$expand=instanceView&api-version=2025-04-01"
		bytes = 0
		for url != "" {
			reply, err := client.Get(url)
			if err != nil {
				b.Fatal(err)
			}
			text, err := io.ReadAll(reply.Body)
			reply.Body.Close()
			if err != nil || reply.StatusCode != http.StatusOK {
				b.Fatalf("list: %d %v", reply.StatusCode, err)
			}
			bytes += int64(len(text))
			url = nextLink(b, text)
		}
	}
	b.ReportMetric(float64(bytes)/thousand, "B/instance")
}

// BenchmarkCreateThousandInstances creates and deletes a scale set of 1,000.
func BenchmarkCreateThousandInstances(b *testing.B) {
	w := newSubscription(b, core.Options{})
	body := model{capacity: thousand, zones: []string{"1", "2", "3"}}.json()
	for b.Loop() {
		w.must("PUT", set, body)
		b.StopTimer()
		w.must("DELETE", set, "")
		b.StartTimer()
	}
}

// BenchmarkUpgradeThousandInstances puts 1,000 instances into a load balancer's pool.
func BenchmarkUpgradeThousandInstances(b *testing.B) {
	w := newSubscription(b, core.Options{})
	w.balancer()
	w.scaleSet(model{capacity: thousand})
	in, out := model{capacity: thousand, pools: []string{pool}}.json(), model{capacity: thousand}.json()
	for b.Loop() {
		in, out = out, in
		w.must("PUT", set, out)
		w.must("POST", set+"/manualupgrade", `{"instanceIds":["*"]}`)
	}
}

func nextLink(b *testing.B, text []byte) string {
	b.Helper()
	var page behaviour.Object
	if err := json.Unmarshal(text, &page); err != nil {
		b.Fatal(err)
	}
	return behaviour.Text(page, "nextLink")
}

// BenchmarkUpdateOneOfThousandInstances writes one instance, as a cloud provider does for every node that joins or
// leaves a pool.
func BenchmarkUpdateOneOfThousandInstances(b *testing.B) {
	w := newSubscription(b, core.Options{})
	w.balancer()
	w.scaleSet(model{capacity: thousand})
	body := func(m model) string {
		return text(behaviour.Object{"location": "eastus", "properties": behaviour.Object{
			"networkProfileConfiguration": behaviour.At(m.object(), "properties.virtualMachineProfile.networkProfile")}})
	}
	join, leave := body(model{pools: []string{pool}}), body(model{})
	n := 0
	for b.Loop() {
		path := set + "/virtualMachines/" + strconv.Itoa(n%thousand)
		if n/thousand%2 == 0 {
			w.must("PUT", path, join)
		} else {
			w.must("PUT", path, leave)
		}
		n++
	}
}
