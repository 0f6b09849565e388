package dns_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/dns"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/records"
)

// identity is a credential that can be down.
type identity struct{ down bool }

func (i *identity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	if i.down {
		return azcore.AccessToken{}, errors.New("the identity service does not answer")
	}
	return azcore.AccessToken{Token: "t", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// TestStart has what ExternalDNS meets while the program starts, and in a large zone.
func TestStart(t *testing.T) {
	scenario(t, "D42 no token", func(t *testing.T) {
		w, i := newZonedAzure(t, core.Options{}), &identity{down: true}
		c, err := arm.New(arm.Config{Endpoint: "https://127.0.0.1", Transport: doer{w.Transport()}, ThrottleWait: dns.ThrottleWait, Credential: i})
		if err != nil {
			t.Fatal(err)
		}
		w.config.Azure = c
		w.restart()
		for _, path := range []string{"/", "/records"} {
			want(t, path, w.call(http.MethodGet, path, nil).Code, http.StatusServiceUnavailable)
		}
		if w.provider.Ready(t.Context()) == nil {
			t.Error("the provider is ready without a token")
		}
		i.down = false
		want(t, "with a token", w.call(http.MethodGet, "/records", nil).Code, http.StatusOK)
		want(t, "ready", w.provider.Ready(t.Context()), error(nil))
	})
	scenario(t, "D43 the negotiation before the zones are known", func(t *testing.T) {
		w := newZonedAzure(t, core.Options{})
		w.fault(core.Fault{Method: "GET", Type: network.DNSZones, Fault: "error", Status: 503})
		want(t, "no zones", w.call(http.MethodGet, "/", nil).Code, http.StatusServiceUnavailable)
		w.fault()
		want(t, "zones", w.call(http.MethodGet, "/", nil).Body.String(), `{"include":["corp.internal","example.com"]}`+"\n")
	})
}

// TestManyRecords encodes the records of six full zones.
func TestManyRecords(t *testing.T) {
	const zones, sets = 6, 10000 // the limit of a public zone
	s := records.Snapshot{Sets: map[records.Key]records.Set{}}
	for z := range zones {
		zone := records.Zone{ID: azure.ID(fmt.Sprintf("%s%d.example", public, z)), Name: fmt.Sprintf("z%d.example", z)}
		s.Zones = append(s.Zones, zone)
		for n := range sets {
			set := records.Set{Zone: zone, Name: fmt.Sprintf("a-host-with-a-usual-name-%d", n), Type: "TXT", TTL: 300, Targets: []string{heritage}}
			s.Sets[set.Key()] = set
		}
	}
	start := time.Now()
	text, err := json.Marshal(s.Endpoints(""))
	t.Logf("%d records are %d bytes, encoded in %v", zones*sets, len(text), time.Since(start))
	if err != nil || len(text) > dns.LongestBody {
		t.Errorf("%d records: %v, %d bytes", zones*sets, err, len(text))
	}
}
