package server_test

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/miekg/dns"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/server"
)

// The name server answers at the address of the endpoints, over UDP and TCP, for the records that a client writes.
func TestNameServer(t *testing.T) {
	a, err := server.Start(t.Context(), server.Options{DNSAddress: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	put := func(id azure.ID, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, a.Info().ARMHTTP+string(id)+"?api-version=2018-05-01",
			bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+a.Info().Token)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode >= http.StatusBadRequest {
			t.Fatalf("%s: %s", id, answer.Status)
		}
	}
	group := azure.GroupID(core.DefaultSubscription, "rg")
	zone := group.Resource("Microsoft.Network/dnszones", "example.com")
	put(group, `{"location":"westeurope"}`)
	put(zone, `{"location":"global"}`)
	put(zone.Child("A", "www"), `{"properties":{"TTL":60,"ARecords":[{"ipv4Address":"192.0.2.1"}]}}`)
	for _, protocol := range []string{"udp", "tcp"} {
		m := new(dns.Msg).SetQuestion("www.example.com.", dns.TypeA)
		reply, _, err := (&dns.Client{Net: protocol}).ExchangeContext(t.Context(), m, a.Info().DNS)
		if err != nil {
			t.Fatal(err)
		}
		if len(reply.Answer) != 1 || !reply.Authoritative {
			t.Errorf("over %s: %v", protocol, reply)
		}
	}
	if _, err := server.Start(t.Context(), server.Options{DNSAddress: a.Info().DNS}); err == nil {
		t.Error("a second local Azure got the port of the first")
	}
}
