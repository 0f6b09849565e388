package arm_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"kaz/internal/arm"
	"kaz/internal/azure"
)

// sent keeps the body of the last request.
type sent struct{ body string }

func (s *sent) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	s.body = string(body)
	return answer(req, 200, `{"properties":{"provisioningState":"Succeeded"}}`, nil), err
}

// Azure shows the network interfaces in a pool twice, in a kilobyte each. They are not sent
// back, so that the load balancer of a large cluster stays below what ARM takes.
func TestMembersByInterfaceAreNotSentBack(t *testing.T) {
	const (
		most  = 4 << 20 // bytes that ARM takes
		nodes = 2000
		group = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/MC_resource-group_cluster_westeurope/providers/"
		lb    = group + "Microsoft.Network/loadBalancers/kubernetes"
	)
	var pools []string
	for _, pool := range []string{"kubernetes", "kubernetes-IPv6"} {
		var configurations, addresses []string
		for i := range nodes {
			id := fmt.Sprintf("%sMicrosoft.Compute/virtualMachineScaleSets/aks-nodepool1-12345678-vmss/virtualMachines/%d/networkInterfaces/"+
				"aks-nodepool1-12345678-vmss/ipConfigurations/ipconfig1", group, i)
			name := fmt.Sprintf("%08d-aaaa-bbbb-cccc-ddddeeeeffff", i)
			configurations = append(configurations, fmt.Sprintf(`{"id":%q}`, id))
			addresses = append(addresses, fmt.Sprintf(`{"name":%q,"id":"%s/backendAddressPools/%s/loadBalancerBackendAddresses/%s",`+
				`"etag":"W/\"00000000-0000-0000-0000-000000000000\"","properties":{"provisioningState":"Succeeded",`+
				`"networkInterfaceIPConfiguration":{"id":%q}},"type":"Microsoft.Network/loadBalancers/backendAddressPools/loadBalancerBackendAddresses"}`,
				name, lb, pool, name, id))
		}
		pools = append(pools, fmt.Sprintf(`{"name":%q,"properties":{"backendIPConfigurations":[%s],"loadBalancerBackendAddresses":[%s]}}`,
			pool, strings.Join(configurations, ","), strings.Join(addresses, ",")))
	}
	pools = append(pools, `{"name":"by address","properties":{"loadBalancerBackendAddresses":[{"name":"n","properties":{"ipAddress":"10.0.0.4"}}]}}`)
	shown := `{"properties":{"backendAddressPools":[` + strings.Join(pools, ",") + `]}}`
	if len(shown) < most {
		t.Errorf("Azure shows %d bytes, want at least %d for this to be a test", len(shown), most)
	}
	s := &sent{}
	client, err := arm.New(arm.Config{Endpoint: "https://management.test", Transport: s})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), azure.Write{ID: lb, Body: []byte(shown), Unseen: true}); err != nil {
		t.Fatal(err)
	}
	const want = `{"properties":{"backendAddressPools":[{"name":"kubernetes","properties":{}},{"name":"kubernetes-IPv6","properties":{}},` +
		`{"name":"by address","properties":{"loadBalancerBackendAddresses":[{"name":"n","properties":{"ipAddress":"10.0.0.4"}}]}}]}}`
	if s.body != want {
		t.Errorf("%d bytes are sent, want %s, got %.400s", len(s.body), want, s.body)
	}
}
