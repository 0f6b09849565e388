package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/gateway"
	"kaz/internal/localazure/core"
	planner "kaz/internal/plan/gateway"
	"kaz/internal/plan/gateway/ingress"
	"kaz/internal/plan/gateway/merge"
	"kaz/internal/plan/gateway/naming"
	"kaz/internal/plan/gateway/readiness"
	"kaz/internal/testkit"
)

const (
	gate         = testkit.Group + "/providers/" + network.ApplicationGateways + "/gate"
	gateFirewall = testkit.Group + "/providers/Microsoft.Network/ApplicationGatewayWebApplicationFirewallPolicies/gate"
)

// gatewayStories are uses of Azure by the application-gateway-controller.
func gatewayStories() []story {
	return []story{
		{
			name: "an Ingress is served", tell: (*cluster).serveIngress,
			needs: []string{
				networkActions + "applicationGateways/read", networkActions + "applicationGateways/write",
				networkActions + "publicIPAddresses/join/action", networkActions + "virtualNetworks/subnets/join/action",
			},
			without: []string{networkActions + "publicIPAddresses/read"},
		},
		{
			name: "an Ingress has a firewall policy", tell: (*cluster).protectIngress,
			needs: []string{networkActions + "applicationGatewayWebApplicationFirewallPolicies/join/action"},
		},
		{
			name: "a pod waits for the readiness gate", tell: (*cluster).openGate,
			needs: []string{networkActions + "applicationGateways/backendhealth/action"},
		},
	}
}

// TestLeastPrivilegeOfGateways checks that every story of the application-gateway-controller succeeds with exactly its role, and that each
// action is necessary.
func TestLeastPrivilegeOfGateways(t *testing.T) {
	const role = "application-gateway-controller"
	state := layGateway(t)
	taken := checkStories(t, gatewayStories(), func(t *testing.T, without string) *cluster { return openCluster(t, state, role, without) })
	for _, a := range roleActions(role) {
		if !taken[a] {
			t.Errorf("role %s: action %s is not needed by any story", role, a)
		}
	}
}

// layGateway creates an application gateway in the network of a cluster and returns the state file.
func layGateway(t *testing.T) string {
	t.Helper()
	type object = map[string]any
	a := testkit.NewAzure(t, core.Options{}, 0)
	const ip = testkit.Group + "/providers/Microsoft.Network/publicIPAddresses/gate"
	a.Put(ip, object{"location": testkit.Location, "sku": object{"name": "Standard"}, "properties": object{"publicIPAllocationMethod": "Static"}})
	a.Put(testkit.VNet, object{"location": testkit.Location, "properties": object{
		"addressSpace": object{"addressPrefixes": []string{"10.240.0.0/16", "10.1.0.0/24"}},
		"subnets": []object{
			{"name": "nodes", "properties": object{"addressPrefix": "10.240.0.0/16", "networkSecurityGroup": object{"id": testkit.SecurityGroup}}},
			{"name": "gate", "properties": object{"addressPrefix": "10.1.0.0/24"}},
		},
	}})
	a.Put(gateFirewall, object{"location": testkit.Location, "properties": object{"managedRules": object{
		"managedRuleSets": []object{{"ruleSetType": "OWASP", "ruleSetVersion": "3.2"}},
	}}})
	one := func(properties object) []object { return []object{{"name": "first", "properties": properties}} }
	ref := func(list string) object { return object{"id": string(gate) + "/" + list + "/first"} }
	a.Put(gate, object{"location": testkit.Location, "properties": object{
		"sku":                      object{"name": "WAF_v2", "tier": "WAF_v2", "capacity": 1},
		"firewallPolicy":           object{"id": gateFirewall},
		"gatewayIPConfigurations":  one(object{"subnet": object{"id": testkit.VNet + "/subnets/gate"}}),
		"frontendIPConfigurations": one(object{"publicIPAddress": object{"id": ip}}),
		"frontendPorts":            one(object{"port": 8000}),
		"backendAddressPools":      one(object{}),
		"backendHttpSettingsCollection": one(object{
			"port": 80, "protocol": "Http", "cookieBasedAffinity": "Disabled", "requestTimeout": 30,
		}),
		"httpListeners": one(object{
			"frontendIPConfiguration": ref("frontendIPConfigurations"), "frontendPort": ref("frontendPorts"), "protocol": "Http",
		}),
		"requestRoutingRules": one(object{
			"ruleType": "Basic", "priority": 20000, "httpListener": ref("httpListeners"), "backendAddressPool": ref("backendAddressPools"),
			"backendHttpSettings": ref("backendHttpSettingsCollection"),
		}),
	}})
	return save(t, a)
}

func (c *cluster) serveIngress() error { return c.serveHost(nil) }

func (c *cluster) protectIngress() error {
	return c.serveHost(map[string]string{"appgw.ingress.kubernetes.io/waf-policy-for-path": string(gateFirewall)})
}

// openGate has the controller ask for the health of a pod behind the Ingress.
func (c *cluster) openGate() error {
	return c.serveHost(nil,
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}},
		},
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: readiness.Gate}}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}},
		})
}

// serveHost has the controller serve an Ingress with a host.
func (c *cluster) serveHost(annotations map[string]string, further ...runtime.Object) error {
	const host = "a.example.com"
	backend := networking.IngressBackend{Service: &networking.IngressServiceBackend{Name: "web", Port: networking.ServiceBackendPort{Number: 80}}}
	kube := fake.NewClientset(append(further,
		&networking.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: ingress.ClassName}, Spec: networking.IngressClassSpec{Controller: ingress.ClassValue}},
		&networking.Ingress{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Annotations: annotations},
			Spec: networking.IngressSpec{IngressClassName: new(ingress.ClassName), Rules: []networking.IngressRule{{Host: host,
				IngressRuleValue: networking.IngressRuleValue{HTTP: &networking.HTTPIngressRuleValue{Paths: []networking.HTTPIngressPath{{
					Path: "/", PathType: new(networking.PathTypePrefix), Backend: backend,
				}}}},
			}}},
		})...)
	var log bytes.Buffer
	controller := gateway.New(gateway.Config{
		Config: planner.Config{Gateway: gate, Ownership: merge.Ownership{Prefix: naming.Of("abc")}, Identity: "this-cluster"},
		Class:  ingress.Class{Value: ingress.ClassValue, Name: ingress.ClassName, Controller: ingress.ClassValue},
		Azure:  c.client, Kube: kube, Events: &record.FakeRecorder{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Calm: gateway.Calm, Most: gateway.Most, Drift: gateway.Drift,
	})
	ctx, stop := context.WithCancel(c.t.Context())
	done := make(chan error, 1)
	go func() { done <- controller.Run(ctx) }()
	const settled = 20 * time.Second
	<-time.After(settled)
	stop()
	if err := <-done; err != nil {
		return err
	}
	doc, err := c.client.Fresh().Get(c.t.Context(), gate)
	if err != nil {
		return fmt.Errorf("%w: %s", err, log.String())
	}
	g, err := azure.Decode[network.ApplicationGateway](doc)
	if err != nil {
		return err
	}
	if strings.Contains(log.String(), "cannot read the health of backends") {
		return errors.New(log.String())
	}
	for _, l := range g.Properties.Listeners {
		if strings.Join(l.Properties.HostNames, "") == host {
			return nil
		}
	}
	return fmt.Errorf("host %s is not served: %s", host, log.String())
}
