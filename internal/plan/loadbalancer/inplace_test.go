package loadbalancer_test

import (
	"testing"

	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
)

// Row 87: a Service is in place as long as anything of it is in Azure, be it only its
// public IP, or a rule at another Service's frontend.
func TestInPlace(t *testing.T) {
	const managed = `{"id":"` + network +
		`publicIPAddresses/kubernetes-x","tags":{"k8s-azure-service":"default/web","k8s-azure-cluster-name":"kubernetes"},"properties":{}}`
	s := service("web", tcp(80, 30080))
	base := "a" + string(s.UID[:8]) + "11112222333344445555666"
	balancer := func(id, properties string) string { return `{"id":"` + id + `","properties":{` + properties + `}}` }
	for what, test := range map[string]struct {
		doc  string
		want bool
	}{
		"nothing":   {`{"id":"` + vnetID + `"}`, false},
		"public IP": {managed, true},
		"frontend":  {balancer(lbID, `"frontendIPConfigurations":[{"name":"`+base+`","properties":{}}]`), true},
		"internal":  {balancer(innerID, `"frontendIPConfigurations":[{"name":"`+base+`-apps","properties":{}}]`), true},
		"rule":      {balancer(lbID, `"loadBalancingRules":[{"name":"`+base+`-TCP-80","properties":{}}]`), true},
		"elsewhere": {balancer(network+"loadBalancers/old", `"frontendIPConfigurations":[{"name":"`+base+`","properties":{}}]`),
			true},
		"foreign": {balancer(lbID, `"frontendIPConfigurations":[{"name":"a0000000011112222333344445555666","properties":{}}]`),
			false},
		"another cluster's": {`{"id":"` + network +
			`publicIPAddresses/x","tags":{"k8s-azure-service":"default/web","k8s-azure-cluster-name":"other"},"properties":{}}`, false},
	} {
		in := loadbalancer.Input{Config: config(), Services: []loadbalancer.Service{{Service: s}}, Have: plan.NewSnapshot([]byte(test.doc))}
		got, err := loadbalancer.InPlace(in)
		if err != nil || got[in.Services[0].Key()] != test.want {
			t.Errorf("%s: %v %v", what, got, err)
		}
	}
}
