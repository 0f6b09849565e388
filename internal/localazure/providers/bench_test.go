package providers_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"kaz/internal/localazure/core"
	"kaz/internal/localazure/providers"
)

const (
	group   = "/subscriptions/" + core.DefaultSubscription + "/resourceGroups/rg"
	network = group + "/providers/Microsoft.Network/virtualNetworks/net"
	sets    = group + "/providers/Microsoft.Compute/virtualMachineScaleSets/set"
)

// site is an Azure with a network for scale sets.
type site struct {
	*core.Emulator
	testing.TB
}

func newSite(b testing.TB) site {
	b.Helper()
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		b.Fatal(err)
	}
	s := site{e, b}
	s.must("PUT", group, `{"location":"eastus"}`)
	s.must("PUT", network,
		`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/8"]},"subnets":[{"name":"nodes",
			"properties":{"addressPrefix":"10.0.0.0/10"}}]}}`)
	return s
}

func (s site) must(method, path, body string) *httptest.ResponseRecorder {
	s.Helper()
	if !strings.Contains(path, "api-version") {
		path += "?api-version=2025-05-01"
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	if w.Code >= http.StatusMultipleChoices {
		s.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w
}

// scaleSet creates a scale set. Each instance has a NIC.
func (s site) scaleSet(name string, instances int) {
	s.Helper()
	s.must("PUT", sets+name,
		fmt.Sprintf(`{"location":"eastus","sku":{"name":"Standard_D4s_v5","capacity":%d},"tags":{"aks-managed-poolName":"pool"},
			"properties":{"upgradePolicy":{"mode":"Manual"},"singlePlacementGroup":false,
"virtualMachineProfile":{"osProfile":{"computerNamePrefix":"node%s","adminUsername":"azureuser",
"linuxConfiguration":{"disablePasswordAuthentication":true,"ssh":{"publicKeys":[{"path":"/home/azureuser/.ssh/authorized_keys",
"keyData":"ssh-rsa AAAA"}]}}},
"storageProfile":{"imageReference":{"publisher":"Canonical","offer":"ubuntu-24_04-lts","sku":"server","version":"latest"},
"osDisk":{"createOption":"FromImage","managedDisk":{"storageAccountType":"Premium_LRS"}}},
"networkProfile":{"networkInterfaceConfigurations":[{"name":"nic","properties":{"primary":true,"enableIPForwarding":true,
"ipConfigurations":[{"name":"ipconfig","properties":{"primary":true,
"subnet":{"id":"%s/subnets/nodes"}}}]}}]}}}}`, instances, name, network))
	s.must("GET", sets+name, "")
}

// BenchmarkListInstances reads all pages of 1,000 instances with their view, over
// HTTPS.
func BenchmarkListInstances(b *testing.B) {
	s := newSite(b)
	s.scaleSet("a", 1000)
	server := httptest.NewUnstartedServer(s.Emulator)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	b.ResetTimer()
	for b.Loop() {
		n := 0
		for url := server.URL + sets + "a/virtualMachines?$expand=instanceView&api-version=2025-04-01"; url != ""; {
			url = readPage(b, client, url, &n)
		}
		if n != 1000 {
			b.Fatalf("%d instances", n)
		}
	}
}

func readPage(b *testing.B, client *http.Client, url string, n *int) string {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("%d %v", answer.StatusCode, err)
	}
	var page struct {
		Value    []json.RawMessage `json:"value"`
		NextLink string            `json:"nextLink"`
	}
	if err := json.Unmarshal(text, &page); err != nil {
		b.Fatal(err)
	}
	*n += len(page.Value)
	return page.NextLink
}

// BenchmarkMemory measures the memory of ten scale sets of 1,000 instances with their NICs: more than 20,000 resources.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		s := newSite(b)
		before := heap()
		for i := range 10 {
			s.scaleSet(string(rune('a'+i)), 1000)
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB")
		runtime.KeepAlive(s)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkScale adds an instance to a scale set of 999 and removes one.
func BenchmarkScale(b *testing.B) {
	s := newSite(b)
	s.scaleSet("a", 999)
	for b.Loop() {
		s.scaleSet("a", 1000)
		s.scaleSet("a", 999)
	}
}

// BenchmarkListResources reads a page of 1,000 of 6,000 resources.
func BenchmarkListResources(b *testing.B) {
	s := newSite(b)
	for i := range 6000 {
		s.must("PUT", fmt.Sprintf("%s/providers/Microsoft.Network/networkSecurityGroups/g%d", group, i), `{"location":"eastus","tags":{"a":"b"}}`)
	}
	for b.Loop() {
		s.must("GET", group+"/resources", "")
	}
}
