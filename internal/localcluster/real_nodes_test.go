package localcluster

import (
	"bytes"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"kaz/internal/localcluster/realnodes"
)

// Both kinds of endpoints of the kubernetes Service name the address at which machines reach the API server.
func TestEndpointsOfTheAPIServer(t *testing.T) {
	type ports []struct{ Port uint16 }
	type endpoints struct {
		Kind      string
		Endpoints []struct{ Addresses []string }
		Ports     ports
		Subsets   []struct {
			Addresses []struct{ IP string }
			Ports     ports
		}
	}
	want, kinds := realnodes.APIServer(), []string{}
	for document := range bytes.SplitSeq(apiServer, []byte("---\n")) {
		var e endpoints
		if err := yaml.Unmarshal(document, &e); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Kind)
		address, port := "", e.Ports
		if e.Kind == "Endpoints" {
			address, port = e.Subsets[0].Addresses[0].IP, e.Subsets[0].Ports
		} else {
			address = e.Endpoints[0].Addresses[0]
		}
		if address != want.Addr().String() || port[0].Port != want.Port() {
			t.Errorf("%s: address %s, ports %v, want %s", e.Kind, address, port, want)
		}
	}
	if !slices.Equal(kinds, []string{"EndpointSlice", "Endpoints"}) {
		t.Errorf("the manifest has %v", kinds)
	}
}
