package gateway_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRequests passes requests of 32 keep-alive clients through a gateway to two backends, with answers of 1 KiB. Clients, gateway
// and backends share the machine. The metric requests/s is what docs/performance.md has an aim for; the processor time of all three does not
// depend on what else the machine does.
func BenchmarkRequests(b *testing.B) {
	body := make([]byte, 1<<10)
	for _, c := range []struct {
		name, port, path string
		change           func(properties object)
	}{
		{name: "http", port: "80", path: "/"},
		{name: "https", port: "443", path: "/", change: overTLS(b)},
		{name: "path 100 of 100", port: "80", path: "/path99/x", change: manyPaths},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := start(b)
			all := w.backends("a", "b")
			for _, one := range all {
				one.handler = func(rw http.ResponseWriter, _ *http.Request) {
					_, _ = rw.Write(body) // a client that has gone does not read it
				}
			}
			properties := site(all[0].address, all[1].address)
			if c.change != nil {
				c.change(properties)
			}
			w.serve(properties)
			w.probed(all...)
			request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: a.example.com\r\nUser-Agent: benchmark\r\nAccept: */*\r\n\r\n", c.path)
			const clientsPerCore = 16
			b.SetParallelism(clientsPerCore)
			b.ReportAllocs()
			b.ResetTimer()
			began, spent := time.Now(), processorTime(b)
			b.RunParallel(func(pb *testing.PB) {
				client := w.keptAlive(b, c.port)
				defer client.close()
				for pb.Next() {
					if err := client.ask(request, len(body)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "requests/s")
			b.ReportMetric(float64((processorTime(b)-spent).Microseconds())/float64(b.N), "cpu-µs/request")
			b.StopTimer()
		})
	}
}

// processorTime is what this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// overTLS adds a listener for HTTPS.
func overTLS(b *testing.B) func(properties object) {
	data, _, _ := pfx(b, "", "a.example.com")
	return func(p object) {
		secure := listener("443", "a.example.com")
		secure["protocol"], secure["sslCertificate"] = "Https", ref("sslCertificates", "c")
		p["sslCertificates"] = list{child("c", object{"data": data})}
		p["httpListeners"] = list{child("any", listener("80")), child("secure", secure)}
		p["requestRoutingRules"] = list{child("any", rule(20, "any", "web")), child("secure", rule(10, "secure", "web"))}
	}
}

// manyPaths leads to the backends by 100 path rules, with a rewrite rule set.
func manyPaths(p object) {
	target := object{"backendAddressPool": ref("backendAddressPools", "web"),
		"backendHttpSettings": ref("backendHttpSettingsCollection", "set"), "rewriteRuleSet": ref("rewriteRuleSets", "r")}
	paths := list{}
	for i := range 100 {
		path := object{"paths": list{fmt.Sprintf("/path%d", i), fmt.Sprintf("/path%d/*", i)}}
		maps.Copy(path, target)
		paths = append(paths, child(fmt.Sprint("p", i), path))
	}
	p["rewriteRuleSets"] = list{child("r", object{"rewriteRules": list{object{"name": "h", "ruleSequence": 1,
		"conditions": list{object{"variable": "http_req_User-Agent", "pattern": "^bench"}},
		"actionSet": object{"requestHeaderConfigurations": list{object{"headerName": "X-Rewritten", "headerValue": "{var_uri_path}"}},
			"responseHeaderConfigurations": list{object{"headerName": "Strict-Transport-Security", "headerValue": "max-age=1"}}}}}})}
	p["urlPathMaps"] = list{child("m", object{"defaultBackendAddressPool": target["backendAddressPool"],
		"defaultBackendHttpSettings": target["backendHttpSettings"], "pathRules": paths})}
	p["requestRoutingRules"] = list{child("any", object{"ruleType": "PathBasedRouting", "priority": 10,
		"httpListener": ref("httpListeners", "any"), "urlPathMap": ref("urlPathMaps", "m")})}
}

// keptAlive is a client with one connection, which costs little itself.
type keptAlive struct {
	net.Conn
	answers *bufio.Reader
}

// keptAlive connects to a frontend of the gateway.
func (w *gatewaySite) keptAlive(b *testing.B, port string) keptAlive {
	b.Helper()
	frontend := netip.MustParseAddrPort(net.JoinHostPort(w.public.String(), port))
	c, err := w.network.Reach(context.WithoutCancel(b.Context()), "tcp", frontend.String())
	if err != nil {
		b.Fatal(err)
	}
	if port == "443" {
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: "a.example.com"})
	}
	return keptAlive{c, bufio.NewReader(c)}
}

// ask sends a request and reads the answer.
func (c keptAlive) ask(request []byte, length int) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	answer, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK || int(n) != length {
		return fmt.Errorf("%d with %d bytes, %w", answer.StatusCode, n, err)
	}
	return answer.Body.Close()
}

func (c keptAlive) close() { _ = c.Close() } // nothing is lost
