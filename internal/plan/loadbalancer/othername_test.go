package loadbalancer_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/plan/loadbalancer/leftover"
)

// made is a public IP in use that was made for a Service in a cluster, and says so in a tag.
func made(s *v1.Service, cluster, tag string) azure.Document {
	return azure.Document(fmt.Sprintf(`{"id":"%spublicIPAddresses/%s-%s","tags":{"k8s-azure-service":"other/one,%s/%s","k8s-azure-cluster-name":%q},
		"properties":{"ipAddress":"20.0.0.1","ipConfiguration":{"id":"%sloadBalancers/x/frontendIPConfigurations/y"}}}`,
		network, cluster, base(s), s.Namespace, s.Name, tag, network))
}

// TestFindOtherName checks that the public IPs of Services tell under which name of the cluster they were made.
func TestFindOtherName(t *testing.T) {
	web, api := service("web", tcp(80, 30080)), service("api", tcp(81, 30081))
	unused := azure.Document(fmt.Sprintf(`{"id":"%spublicIPAddresses/kubernetes-%s","tags":{"k8s-azure-service":"default/web","k8s-azure-cluster-name":"kubernetes"}}`, network, base(web)))
	successor := web.DeepCopy()
	successor.UID = "99999999-1111-2222-3333-444455556666"
	pinned := web.DeepCopy()
	pinned.Spec.LoadBalancerIP = " 20.0.0.1"
	for name, c := range map[string]struct {
		services, others []*v1.Service
		have             []azure.Document
		want             string
	}{
		"nothing":              {services: []*v1.Service{web}},
		"under the right name": {services: []*v1.Service{web}, have: []azure.Document{made(web, "kubernetes", "kubernetes")}},
		"in other case":        {services: []*v1.Service{web}, have: []azure.Document{made(web, "Kubernetes", "KUBERNETES")}},
		"under another name": {services: []*v1.Service{web}, have: []azure.Document{made(web, "prod", "prod")},
			want: "prod 1"},
		"Services that are not asked about": {services: []*v1.Service{web}, others: []*v1.Service{api},
			have: []azure.Document{made(api, "prod", "prod")}, want: "prod 1"},
		"several": {services: []*v1.Service{web, api},
			have: []azure.Document{made(web, "prod", "prod"), made(api, "prod", "prod")}, want: "prod 2"},
		"one under the right name": {services: []*v1.Service{web}, others: []*v1.Service{api},
			have: []azure.Document{made(web, "prod", "prod"), made(api, "kubernetes", "kubernetes")}},
		"unused under the right name": {services: []*v1.Service{web}, have: []azure.Document{made(web, "prod", "prod"), unused},
			want: "prod 1"},
		"tagged with the right name":     {services: []*v1.Service{web}, have: []azure.Document{made(web, "prod", "kubernetes")}},
		"of another Service of the name": {services: []*v1.Service{successor}, have: []azure.Document{made(web, "prod", "prod")}},
		"of another cluster":             {services: []*v1.Service{web}, have: []azure.Document{made(api, "prod", "prod")}},
		"named by its Service":           {services: []*v1.Service{pinned}, have: []azure.Document{made(web, "prod", "prod")}},
	} {
		in := loadbalancer.Input{Config: config(), Others: c.others, Have: plan.NewSnapshot(c.have...)}
		for _, s := range c.services {
			in.Services = append(in.Services, loadbalancer.Service{Service: s})
		}
		other, found := leftover.FindOtherName(in)
		got := ""
		if found {
			got = fmt.Sprint(other.Name, " ", other.Addresses)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
