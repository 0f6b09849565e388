package loadbalancer_test

import (
	"testing"

	"kaz/internal/azure"
	"kaz/internal/key"
	"kaz/internal/plan/loadbalancer"
)

// A public IP is managed when its tag names a Service, NAMESPACE/NAME. What else somebody
// has written there, under either name of the tag, leaves it somebody's own: it gets no
// tags and outlives the Service.
func TestAPublicIPIsManagedWhenItsTagNamesAService(t *testing.T) {
	const id = azure.ID(network + "publicIPAddresses/mine")
	for text, managed := range map[string]bool{
		`"service":""`:                                   false,
		`"k8s-azure-service":""`:                         false,
		`"k8s-azure-service":" , "`:                      false,
		`"Service":"payments"`:                           false,
		`"service":"payments, billing"`:                  false,
		`"K8s-Azure-Service":"payments"`:                 false,
		`"service":"/"`:                                  false,
		`"service":"team/"`:                              false,
		`"service":"https://wiki/web"`:                   false,
		`"service":"Team A/web"`:                         false,
		`"owner":"default/web"`:                          false,
		`"k8s-azure-service":"","service":"default/web"`: false,
		`"service":"default/web"`:                        true,
		`"SERVICE":"default/web"`:                        true,
		`"k8s-azure-service":"default/web"`:              true,
		`"k8s-azure-service":" default/web "`:            true,
	} {
		t.Run(text, func(t *testing.T) {
			w := newWorld(2)
			w.put(id, parse(`{"location":"westeurope","sku":{"name":"Standard"},"tags":{`+text+`},"properties":{"publicIPAllocationMethod":"Static","publicIPAddressVersion":"IPv4","ipAddress":"20.9.9.9"}}`))
			s := service("web", tcp(80, 30080))
			s.Annotations = map[string]string{key.PublicIPName.Name: "mine", key.PublicIPTags.Name: "a=b"}
			in := loadbalancer.Input{Config: config(), Nodes: machines(2), Services: []loadbalancer.Service{{Service: s}}}
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if _, tagged := w.docs[id.Key()]["tags"].(object)["a"]; tagged != managed {
				t.Errorf("its tags are %v", w.docs[id.Key()]["tags"])
			}
			in.Services[0].Gone = true
			if _, err := w.commit(in); err != nil {
				t.Fatal(err)
			}
			if _, there := w.docs[id.Key()]; there == managed {
				t.Errorf("that it is there is %v", there)
			}
		})
	}
}
