package core_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

// overHTTPS is a client of an Azure behind TLS on the loopback.
func overHTTPS(b *testing.B) (azureUnderTest, func(method, path, body string) int) {
	b.Helper()
	a := start(b, core.Options{})
	a.group()
	server := httptest.NewUnstartedServer(a)
	server.EnableHTTP2 = true
	server.StartTLS()
	b.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	return a, func(method, path, body string) int {
		r, err := http.NewRequestWithContext(b.Context(), method, server.URL+path+"?api-version=2025-05-01", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		answer, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			b.Fatal(err)
		}
		return answer.StatusCode
	}
}

const realistic = `{"location":"eastus","tags":{"aks-managed":"true","owner":"team"},"properties":{"routes":[` +
	`{"name":"a","properties":{"addressPrefix":"10.244.0.0/24","nextHopType":"VirtualAppliance","nextHopIpAddress":"10.0.0.4"}},` +
	`{"name":"b","properties":{"addressPrefix":"10.244.1.0/24","nextHopType":"VirtualAppliance","nextHopIpAddress":"10.0.0.5"}}]}}`

func BenchmarkGetOverHTTPS(b *testing.B) {
	a, do := overHTTPS(b)
	a.must("PUT", table, realistic)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if status := do("GET", table, ""); status != 200 {
				b.Errorf("GET: %d", status)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "GET/s")
}

func BenchmarkPutOverHTTPS(b *testing.B) {
	_, do := overHTTPS(b)
	n := make(chan int, 1)
	n <- 0
	b.RunParallel(func(p *testing.PB) {
		i := <-n
		n <- i + 1
		for p.Next() {
			if status := do("PUT", fmt.Sprintf("%s%d", table, i), realistic); status > 201 {
				b.Errorf("PUT: %d", status)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "PUT/s")
}

// instance is a document as large as a scale set instance with its view.
func instance(i int) string {
	nic := fmt.Sprintf("%s/networkInterfaces/nic%d", group, i)
	return `{"location":"eastus","sku":{"name":"Standard_D4s_v5","tier":"Standard"},"zones":["1"],"tags":{"aks-managed-poolName":"pool"},
			"properties":{` +
		`"latestModelApplied":true,"modelDefinitionApplied":"VirtualMachineScaleSet","hardwareProfile":{"vmSize":"Standard_D4s_v5"},` +
		`"networkProfileConfiguration":{"networkInterfaceConfigurations":[{"name":"nic","properties":{"primary":true,
			"enableAcceleratedNetworking":true,"dnsSettings":{"dnsServers":[]},` +
		`"enableIPForwarding":true,"ipConfigurations":[{"name":"ipconfig","properties":{"primary":true,"subnet":{"id":"` + network +
		`/subnets/s"},"privateIPAddressVersion":"IPv4"}}]}}]},` +
		`"storageProfile":{"imageReference":{"id":"/subscriptions/x/resourceGroups/images/providers/` +
		`Microsoft.Compute/galleries/g/images/i/versions/1.0.0"},` +
		`"osDisk":{"osType":"Linux","name":"vmss_vmss_0_OS__1_0123456789abcdef0123456789abcdef","createOption":"FromImage",
			"caching":"ReadOnly","managedDisk":{"storageAccountType":"Premium_LRS",
			"id":"` + group + `/providers/Microsoft.Compute/disks/os` + fmt.Sprint(i) + `"},"diskSizeGB":128},"dataDisks":[]},` +
		`"osProfile":{"computerName":"vmss00000` + fmt.Sprint(i) +
		`","adminUsername":"azureuser","linuxConfiguration":{"disablePasswordAuthentication":true,` +
		`"ssh":{"publicKeys":[{"path":"/home/azureuser/.ssh/authorized_keys","keyData":"ssh-rsa AAAA"}]},` +
		`"provisionVMAgent":true},"secrets":[],"allowExtensionOperations":true},` +
		`"networkProfile":{"networkInterfaces":[{"id":"` + nic + `","properties":{"primary":true}}]},` +
		`"instanceView":{"placementGroupId":"p","platformUpdateDomain":0,"platformFaultDomain":0,"computerName":"vmss","osName":"ubuntu",
			"vmAgent":{"vmAgentVersion":"2.9","statuses":[{"code":"ProvisioningState/succeeded","level":"Info","displayStatus":"Ready"}]},
			` +
		`"statuses":[{"code":"ProvisioningState/succeeded","level":"Info","displayStatus":"Provisioning succeeded"},
			{"code":"PowerState/running","level":"Info","displayStatus":"VM running"}]},"power":"running"}}`
}

// BenchmarkMemory says what 20,000 resources of the size of instances take.
func BenchmarkMemory(b *testing.B) {
	const resources = 20000
	for b.Loop() {
		a := start(b, core.Options{})
		a.group()
		before := heap()
		for i := range resources {
			a.must("PUT", fmt.Sprintf("%s%d", machine, i), instance(i))
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MB")
		runtime.KeepAlive(a)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkListInstances reads all pages of 1,000 resources of that size, over HTTPS.
func BenchmarkListInstances(b *testing.B) {
	a, do := overHTTPS(b)
	for i := range 1000 {
		a.must("PUT", fmt.Sprintf("%s%d", machine, i), instance(i))
	}
	if n := len(behaviour.Objects(a.must("GET", group+"/providers/Microsoft.Compute/virtualMachines", "").body, "value")); n != 1000 {
		b.Fatalf("%d instances", n)
	}
	for b.Loop() {
		if status := do("GET", group+"/providers/Microsoft.Compute/virtualMachines", ""); status != 200 {
			b.Fatalf("list: %d", status)
		}
	}
}
