package appgateway_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smallstep/pkcs7"
	"software.sslmate.com/src/go-pkcs12"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/behaviourtest"
	"kaz/internal/localazure/behaviour/network"
	"kaz/internal/localazure/behaviour/network/appgateway"
	"kaz/internal/localazure/behaviour/resources"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/core/model"
)

type (
	object = map[string]any
	list   = []any
)

const (
	networks = behaviourtest.Group + "/providers/Microsoft.Network"
	id       = networks + "/applicationGateways/g"
	subnet   = networks + "/virtualNetworks/v/subnets/gateways"
	public   = networks + "/publicIPAddresses/p"
)

type cloud struct {
	*behaviourtest.Azure
	t testing.TB
}

// start returns a local Azure with a subnet for gateways, another subnet, and two public IP addresses.
func start(t testing.TB, o core.Options) cloud {
	t.Helper()
	o.Providers = []behaviour.Provider{resources.Provider(), network.Provider()}
	for i := range o.Providers[1].Types {
		o.Providers[1].Types[i].Model = model.Official()
	}
	c := cloud{behaviourtest.StartWith(t, o), t}
	c.put(networks+"/virtualNetworks/v", object{"location": "eastus", "properties": object{
		"addressSpace": object{"addressPrefixes": list{"10.0.0.0/16"}},
		"subnets": list{object{"name": "gateways", "properties": object{"addressPrefix": "10.0.0.0/24"}},
			object{"name": "nodes", "properties": object{"addressPrefix": "10.0.1.0/24"}}}}})
	c.put(public, object{"location": "eastus", "sku": object{"name": "Standard"},
		"properties": object{"publicIPAllocationMethod": "Static"}})
	c.put(networks+"/publicIPAddresses/basic", object{"location": "eastus", "properties": object{}})
	return c
}

func (c cloud) send(method, path string, body object) behaviourtest.Answer {
	c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.Request(method, path, string(text))
}

func (c cloud) put(path string, body object) behaviour.Object {
	c.t.Helper()
	if got := c.send("PUT", path, body); got.Status >= http.StatusMultipleChoices {
		c.t.Fatalf("PUT %s: %d %v", path, got.Status, got.Body)
	}
	return c.Request("GET", path, "").Body
}

func ref(of string) object { return object{"id": of} }

func part(of, name string) object { return ref(id + "/" + of + "/" + name) }

func child(name string, p object) object { return object{"name": name, "properties": p} }

// document is a gateway with a listener for http, one rule by path, and most other parts.
func document() object {
	return object{"location": "eastus", "properties": object{
		"sku":                           object{"name": "Standard_v2", "tier": "Standard_v2", "capacity": 2},
		"gatewayIPConfigurations":       list{child("i", object{"subnet": ref(subnet)})},
		"frontendIPConfigurations":      list{child("f", object{"publicIPAddress": ref(public)})},
		"frontendPorts":                 list{child("http", object{"port": 80}), child("https", object{"port": 443})},
		"backendAddressPools":           list{child("pool", object{"backendAddresses": list{object{"ipAddress": "10.0.1.4"}}})},
		"backendHttpSettingsCollection": list{child("set", object{"port": 80, "protocol": "Http", "probe": part("probes", "probe")})},
		"probes": list{child("probe", object{"protocol": "Http", "host": "a.example.com", "path": "/", "interval": 5, "timeout": 5,
			"unhealthyThreshold": 3})},
		"httpListeners": list{
			child("any", object{"protocol": "Http", "frontendIPConfiguration": part("frontendIPConfigurations", "f"),
				"frontendPort": part("frontendPorts", "http")}),
			child("host", object{"protocol": "Http", "frontendIPConfiguration": part("frontendIPConfigurations", "f"),
				"frontendPort": part("frontendPorts", "http"), "hostNames": list{"a.example.com"}}),
		},
		"redirectConfigurations": list{child("redirect", object{"redirectType": "Permanent", "targetUrl": "https://example.com"})},
		"rewriteRuleSets": list{child("rewrite", object{"rewriteRules": list{object{"name": "one", "ruleSequence": 1,
			"conditions": list{object{"variable": "var_uri_path", "pattern": "x"}},
			"actionSet":  object{"requestHeaderConfigurations": list{object{"headerName": "X-A", "headerValue": "1"}}}}}}),
			child("again", object{"rewriteRules": list{object{"name": "one", "ruleSequence": 1,
				"conditions": list{object{"variable": "var_uri_path", "pattern": "x"}},
				"actionSet":  object{"urlConfiguration": object{"modifiedPath": "/y", "reroute": true}}}}})},
		"urlPathMaps": list{child("map", object{"defaultBackendAddressPool": part("backendAddressPools", "pool"),
			"defaultBackendHttpSettings": part("backendHttpSettingsCollection", "set"),
			"pathRules": list{child("x", object{"paths": list{"/x/*"}, "backendAddressPool": part("backendAddressPools", "pool"),
				"backendHttpSettings": part("backendHttpSettingsCollection", "set"), "rewriteRuleSet": part("rewriteRuleSets",
					"rewrite")})}})},
		"requestRoutingRules": list{
			child("basic", object{"ruleType": "Basic", "priority": 20, "httpListener": part("httpListeners", "any"),
				"backendAddressPool": part("backendAddressPools", "pool"), "backendHttpSettings": part("backendHttpSettingsCollection",
					"set")}),
			child("paths", object{"ruleType": "PathBasedRouting", "priority": 10, "httpListener": part("httpListeners", "host"),
				"urlPathMap": part("urlPathMaps", "map")}),
		},
	}}
}

// edit changes the properties of the named part of a document: "httpListeners.any". A nil value removes a property.
func edit(doc object, where string, changes object) object {
	properties := doc["properties"].(object)
	if where != "" {
		path := strings.Split(where, ".")
		for i := 0; i+1 < len(path); i += 2 {
			found := false
			for _, p := range properties[path[i]].(list) {
				if p.(object)["name"] == path[i+1] {
					properties, found = p.(object)["properties"].(object), true
					break
				}
			}
			if !found {
				panic("no " + where)
			}
		}
	}
	for k, v := range changes {
		if v == nil {
			delete(properties, k)
		} else {
			properties[k] = v
		}
	}
	return doc
}

// pfx returns a new certificate with its key, in base64.
func pfx(t testing.TB, password string, padding int) (string, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "a.example.com"},
		DNSNames: []string{"a.example.com"}, NotAfter: time.Now().Add(time.Hour)}
	for i := range padding {
		template.DNSNames = append(template.DNSNames, fmt.Sprintf("%d.%s.example.com", i, strings.Repeat("a", 60)))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	data, err := pkcs12.Modern.Encode(key, leaf, nil, password)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(data), leaf
}

// The parts of a gateway get what all children have, and show which parts refer to them.
func TestParts(t *testing.T) {
	c := start(t, core.Options{})
	got := c.put(id, document())
	if guid := behaviour.Text(got, "properties.resourceGuid"); len(guid) != 36 {
		t.Errorf("the resource GUID is %q", guid)
	}
	if state := behaviour.Text(got, "properties.operationalState"); state != "Running" {
		t.Errorf("the operational state is %q", state)
	}
	for at, want := range map[string]any{
		"properties.frontendPorts.0.id":                                             id + "/frontendPorts/http",
		"properties.frontendPorts.0.type":                                           "Microsoft.Network/applicationGateways/frontendPorts",
		"properties.frontendPorts.0.etag":                                           got["etag"],
		"properties.frontendPorts.0.properties.provisioningState":                   "Succeeded",
		"properties.frontendPorts.0.properties.httpListeners.0.id":                  id + "/httpListeners/any",
		"properties.frontendPorts.0.properties.httpListeners.1.id":                  id + "/httpListeners/host",
		"properties.httpListeners.1.properties.requestRoutingRules.#":               1,
		"properties.backendAddressPools.0.properties.pathRules.0.id":                id + "/urlPathMaps/map/pathRules/x",
		"properties.probes.0.properties.backendHttpSettings.0.id":                   id + "/backendHttpSettingsCollection/set",
		"properties.gatewayIPConfigurations.0.properties.privateIPAddress":          nil,
		"properties.backendHttpSettingsCollection.0.properties.requestTimeout":      30,
		"properties.backendHttpSettingsCollection.0.properties.cookieBasedAffinity": "Disabled",
	} {
		if had := behaviourtest.At(got, at); !behaviour.Equal(had, want) {
			t.Errorf("%s is %v, want %v", at, had, want)
		}
	}
	again := c.put(id, got)
	delete(got, "etag")
	for _, doc := range []object{got, again} {
		text, _ := json.Marshal(doc)
		if bytes.Contains(text, []byte("$")) {
			t.Errorf("a reply has a private field: %s", text)
		}
	}
	if diff := cmp.Diff(behaviourtest.At(got, "properties.httpListeners.0.properties"), behaviourtest.At(again,
		"properties.httpListeners.0.properties")); diff != "" {
		t.Errorf("a document that is sent back changes: %s", diff)
	}
	if had := behaviour.Text(c.Request("GET", public, "").Body, "properties.ipConfiguration.id"); had != id+"/frontendIPConfigurations/f" {
		t.Errorf("the public IP address is of %q", had)
	}
	if had := behaviourtest.At(c.Request("GET", subnet, "").Body, "properties.applicationGatewayIPConfigurations.0.id"); had !=
		id+"/gatewayIPConfigurations/i" {
		t.Errorf("the subnet shows %v", had)
	}
	for _, scope := range []string{behaviourtest.Group, behaviourtest.Subscription} {
		all := c.Request("GET", scope+"/providers/Microsoft.Network/applicationGateways", "").Body
		if n := len(behaviour.Array(all, "value")); n != 1 {
			t.Errorf("%s lists %d gateways", scope, n)
		}
	}
	for _, used := range []string{subnet, public} {
		if refused := c.Request("DELETE", used, ""); refused.Status != http.StatusBadRequest {
			t.Errorf("DELETE %s of a gateway: %d", used, refused.Status)
		}
	}
}

// streams is a gateway that also has a listener for TCP, and one for TLS with a server name.
func streams(t testing.TB) object {
	t.Helper()
	data, _ := pfx(t, "secret", 0)
	return edit(document(), "", object{
		"frontendPorts":   list{child("http", object{"port": 80}), child("tcp", object{"port": 5432}), child("tls", object{"port": 8883})},
		"sslCertificates": list{child("cert", object{"data": data, "password": "secret"})},
		"probes": list{child("probe", object{"protocol": "Http", "host": "a.example.com", "path": "/"}),
			child("stream", object{"protocol": "Tcp", "interval": 5, "timeout": 5, "unhealthyThreshold": 3})},
		"listeners": list{
			child("tcp", object{"protocol": "Tcp", "frontendIPConfiguration": part("frontendIPConfigurations", "f"),
				"frontendPort": part("frontendPorts", "tcp")}),
			child("tls", object{"protocol": "Tls", "frontendIPConfiguration": part("frontendIPConfigurations", "f"),
				"frontendPort": part("frontendPorts", "tls"), "hostNames": list{"a.example.com"},
				"sslCertificate": part("sslCertificates", "cert")}),
		},
		"backendSettingsCollection": list{child("stream", object{"port": 5432, "protocol": "Tcp", "probe": part("probes", "stream")})},
		"routingRules": list{
			child("tcp", object{"ruleType": "Basic", "priority": 30, "listener": part("listeners", "tcp"),
				"backendAddressPool": part("backendAddressPools", "pool"), "backendSettings": part("backendSettingsCollection", "stream")}),
			child("tls", object{"priority": 31, "listener": part("listeners", "tls"),
				"backendAddressPool": part("backendAddressPools", "pool"), "backendSettings": part("backendSettingsCollection", "stream")}),
		},
	})
}

// The parts for connections show which parts refer to them, once each, however often the document is sent back.
func TestStreamParts(t *testing.T) {
	c := start(t, core.Options{})
	got := c.put(id, streams(t))
	for range 2 {
		got = c.put(id, got)
	}
	for at, want := range map[string]any{
		"properties.listeners.0.properties.routingRules.#":                 1,
		"properties.listeners.1.properties.routingRules.0.id":              id + "/routingRules/tls",
		"properties.backendSettingsCollection.0.properties.routingRules.#": 2,
		"properties.backendSettingsCollection.0.properties.timeout":        30,
		"properties.backendAddressPools.0.properties.routingRules.#":       2,
		"properties.frontendPorts.1.properties.listeners.#":                1,
		"properties.frontendIPConfigurations.0.properties.listeners.#":     2,
		"properties.sslCertificates.0.properties.listeners.#":              1,
		"properties.probes.1.properties.backendSettings.#":                 1,
		"properties.routingRules.1.properties.ruleType":                    "Basic",
	} {
		if had := behaviourtest.At(got, at); !behaviour.Equal(had, want) {
			t.Errorf("%s is %v, want %v", at, had, want)
		}
	}
}

func TestStreamRefusals(t *testing.T) {
	c := start(t, core.Options{})
	for _, r := range []struct {
		where   string
		changes object
		code    string
	}{
		{"listeners.tcp", object{"frontendPort": part("frontendPorts", "http")}, "ApplicationGatewayListenersUsingSamePortWithDifferentProtocols"},
		{"listeners.tcp", object{"frontendPort": part("frontendPorts", "tls"), "protocol": "Tls"}, "ApplicationGatewayHttpsListenerMustReferenceCert"},
		{"listeners.tcp", object{"sslCertificate": part("sslCertificates", "cert")}, "ApplicationGatewayHttpListenerCannotReferenceCert"},
		{"routingRules.tcp", object{"priority": 20}, "ApplicationGatewayRequestRoutingRulePriorityNotUnique"},
		{"routingRules.tcp", object{"priority": nil}, "ApplicationGatewayRequestRoutingRulePartialPriorityDefined"},
		{"routingRules.tcp", object{"listener": part("listeners", "tls")}, "ApplicationGatewayRequestRoutingRulesUsingSameListener"},
		{"routingRules.tcp", object{"backendSettings": nil}, "MissingJsonReferenceId"},
		{"routingRules.tcp", object{"backendAddressPool": part("backendAddressPools", "none")}, "InvalidResourceReference"},
		{"backendSettingsCollection.stream", object{"probe": part("probes", "probe")}, "ApplicationGatewayProbeProtocolMismatch"},
		{"backendSettingsCollection.stream", object{"timeout": 86401}, "InvalidPropertyValue"},
		{"backendSettingsCollection.stream", object{"cookieBasedAffinity": "Disabled"}, "InvalidJson"},
		{"routingRules.tcp", object{"loadDistributionPolicy": part("loadDistributionPolicies", "none")}, "InvalidJson"},
	} {
		got := c.send("PUT", id, edit(streams(t), r.where, r.changes))
		if codes, text := codesOf(got); got.Status != http.StatusBadRequest || !slices.Contains(codes, r.code) {
			t.Errorf("%s %v: %d %v %s\nwant %s", r.where, r.changes, got.Status, codes, text, r.code)
		}
	}
}

// Secrets are never shown, and kept when a PUT leaves them out.
func TestCertificates(t *testing.T) {
	c := start(t, core.Options{})
	data, leaf := pfx(t, "secret", 0)
	root := base64.StdEncoding.EncodeToString(leaf.Raw)
	doc := edit(document(), "", object{"sslCertificates": list{child("Cert", object{"data": data, "password": "secret"})},
		"trustedRootCertificates": list{child("root", object{"data": root})}})
	shown := func(got object) {
		t.Helper()
		text, _ := json.Marshal(got)
		if bytes.Contains(text, []byte(data)) || bytes.Contains(text, []byte("secret\"")) {
			t.Error("the secret is shown")
		}
		der, err := base64.StdEncoding.DecodeString(fmt.Sprint(behaviourtest.At(got,
			"properties.sslCertificates.0.properties.publicCertData")))
		if err != nil {
			t.Fatal(err)
		}
		message, err := pkcs7.Parse(der)
		if err != nil || len(message.Certificates) != 1 || !message.Certificates[0].Equal(leaf) {
			t.Errorf("publicCertData: %v, want the certificate as PKCS #7", err)
		}
		if had := behaviourtest.At(got, "properties.trustedRootCertificates.0.properties.data"); had != root {
			t.Errorf("the root is %v", had)
		}
	}
	shown(c.put(id, doc))
	edit(doc, "sslCertificates.Cert", object{"data": nil, "password": nil})
	edit(doc, "trustedRootCertificates.root", object{"data": nil})
	doc["properties"].(object)["sslCertificates"].(list)[0].(object)["name"] = "cert"
	shown(c.put(id, doc))
	c.Run(behaviourtest.Exchange{Do: "PATCH " + id, Body: `{"tags":{"a":"b"},"properties":{"enableHttp2":true}}`,
		Has: map[string]any{"tags.a": "b", "properties.enableHttp2": false}})
	shown(c.Request("GET", id, "").Body)
	c.Look(func(w behaviour.World) {
		stored, _ := w.Get(id)
		kept := appgateway.Certificates(stored)
		if len(kept) != 1 || kept[0].Data.Reveal() != data || kept[0].Password.Reveal() != "secret" {
			t.Errorf("the certificate is not kept: %v", kept)
		}
	})
}

// Each refusal names the part, its value and what is allowed.
func TestRefusals(t *testing.T) {
	c := start(t, core.Options{})
	data, _ := pfx(t, "secret", 0)
	large, _ := pfx(t, "", 300)
	many := func(n int, f func(i int) object) list {
		all := list{}
		for i := range n {
			all = append(all, f(i))
		}
		return all
	}
	listener := func(port string, hosts ...any) object {
		return object{"protocol": "Http", "frontendIPConfiguration": part("frontendIPConfigurations", "f"),
			"frontendPort": part("frontendPorts", port), "hostNames": list(hosts)}
	}
	for _, r := range []struct {
		where   string
		changes object
		code    string // of the error, or of its first detail
		says    string // part of the message
	}{
		{"", object{"sku": nil}, "MissingRequiredProperty", "properties.sku.name"},
		{"", object{"sku": object{"name": "Standard_v2", "tier": "WAF_v2", "capacity": 1}}, "ApplicationGatewaySkuTierMismatch", "WAF_v2"},
		{"", object{"sku": object{"name": "Standard_v2"}}, "ApplicationGatewayInvalidCapacity", "from 1 to 125"},
		{"", object{"sku": object{"name": "Standard_v2", "capacity": 126}}, "ApplicationGatewayInvalidCapacity", "126"},
		{"", object{"sku": object{"name": "Basic", "capacity": 3}}, "ApplicationGatewayInvalidCapacity", "from 1 to 2"},
		{"", object{"autoscaleConfiguration": object{"minCapacity": 5, "maxCapacity": 4}},
			"ApplicationGatewayInvalidAutoscaleConfiguration",
			"minCapacity 5"},
		{"", object{"frontendPorts": list{}}, "MissingRequiredProperty", "frontendPorts"},
		{"", object{"gatewayIPConfigurations": list{}}, "MissingRequiredProperty", "gatewayIPConfigurations"},
		{"", object{"backendAddressPools": list{child("-", object{})}}, "InvalidResourceName", "Resource name - is invalid"},
		{"", object{"backendAddressPools": many(101, func(i int) object { return child(fmt.Sprint("p", i), object{}) })},
			"ApplicationGatewayBackendAddressPoolLimitReached", "is 101 and the maximum allowed is 100"},
		{"", object{"probes": many(101, func(i int) object { return child(fmt.Sprint("p", i), object{"protocol": "Http"}) })},
			"ApplicationGatewayProbeLimitReached", "101"},
		{"backendAddressPools.pool", object{"backendAddresses": many(1201, func(i int) object {
			return object{"ipAddress": fmt.Sprintf("10.1.%d.%d", i/256, i%256)}
		})}, "ApplicationGatewayBackendAddressLimitReached", "1201"},
		{"backendAddressPools.pool", object{"backendAddresses": list{object{"ipAddress": "10.0.0.9", "fqdn": "a.b"}}},
			"ApplicationGatewayBackendAddressInvalid", "10.0.0.9"},
		{"backendAddressPools.pool", object{"backendAddresses": list{object{"ipAddress": "fd00::1"}}},
			"ApplicationGatewayBackendAddressInvalid", "Only IPv4 is supported"},
		{"gatewayIPConfigurations.i", object{"subnet": nil}, "MissingJsonReferenceId", "gatewayIPConfigurations/i"},
		{"gatewayIPConfigurations.i", object{"subnet": ref(networks + "/virtualNetworks/v/subnets/none")}, "InvalidResourceReference",
			"none"},
		{"frontendIPConfigurations.f", object{"publicIPAddress": nil}, "ApplicationGatewayFrontendIPConfigurationHasNoAddress", "f"},
		{"frontendIPConfigurations.f", object{"publicIPAddress": ref(networks + "/publicIPAddresses/none")}, "InvalidResourceReference",
			"none"},
		{"frontendIPConfigurations.f", object{"publicIPAddress": ref(networks + "/publicIPAddresses/basic")},
			"ApplicationGatewayPublicIPAddressSkuMismatch", "basic"},
		{"frontendPorts.http", object{"port": 443}, "ApplicationGatewayFrontendPortsUsingSamePortNumber", "443"},
		{"frontendPorts.http", object{"port": 70000}, "InvalidPropertyValue", "70000"},
		{"httpListeners.any", object{"frontendPort": nil}, "MissingJsonReferenceId", "httpListeners/any"},
		{"httpListeners.any", object{"frontendPort": part("frontendPorts", "none")}, "InvalidResourceReference", "frontendPorts/none"},
		{"httpListeners.any", object{"frontendPort": part("probes", "probe")}, "InvalidJsonReferenceId", "probes/probe"},
		{"httpListeners.any", object{"frontendPort": ref(strings.Replace(id, "/g", "/other", 1) + "/frontendPorts/http")},
			"InvalidResourceReference",
			"other"},
		{"httpListeners.host", object{"hostNames": list{}}, "ApplicationGatewayHttpListenersUsingSameFrontendPort", "frontendPorts/http"},
		{"httpListeners.any", object{"hostName": "A.example.com"},
			"ApplicationGatewayHttpListenersUsingSameFrontendPortHostNameAndFrontendIpConfig", "any and host"},
		{"httpListeners.host", object{"hostName": "b"}, "ApplicationGatewayListenerHasHostNameAndHostNames", "host"},
		{"httpListeners.host", object{"hostNames": list{"1", "2", "3", "4", "5", "6"}},
			"ApplicationGatewayHttpListenerHostNamesLimitReached", "6"},
		{"httpListeners.host", object{"hostNames": list{"a/b"}}, "ApplicationGatewayHttpListenerHostNameInvalid", "a/b"},
		{"httpListeners.host", object{"hostNames": list{strings.Repeat("a", 256)}}, "ApplicationGatewayHttpListenerHostNameInvalid", "255"},
		{"httpListeners.host", object{"protocol": "Https"}, "ApplicationGatewayListenersUsingSamePortWithDifferentProtocols", "Https"},
		{"", object{"httpListeners": list{child("any", listener("http")), child("host", object{"protocol": "Https",
			"frontendIPConfiguration": part("frontendIPConfigurations", "f"), "frontendPort": part("frontendPorts", "https")})}},
			"ApplicationGatewayHttpsListenerMustReferenceCert", "host"},
		{"", object{"sslCertificates": list{child("c", object{})}}, "ApplicationGatewaySslCertificateDataMustBeSpecified",
			"sslCertificates/c"},
		{"", object{"sslCertificates": list{child("c", object{"data": data, "password": "wrong"})}},
			"ApplicationGatewaySslCertificateInvalidData", "sslCertificates/c is invalid"},
		{"", object{"sslCertificates": list{child("c", object{"data": "eHg=", "password": ""})}},
			"ApplicationGatewaySslCertificateInvalidData", "sslCertificates/c is invalid"},
		{"", object{"sslCertificates": list{child("c", object{"data": large})}}, "ApplicationGatewaySslCertificateTooLarge", "16384"},
		{"", object{"sslCertificates": list{child("c", object{"keyVaultSecretId": "https://v.vault.azure.net/secrets/c"})}},
			"ApplicationGatewayKeyVaultSecretException", "user-assigned identity"},
		{"", object{"sslCertificates": list{child("c", object{"keyVaultSecretId": "v/c"})}},
			"ApplicationGatewaySslCertificateInvalidKeyVaultSecretId", "v/c"},
		{"", object{"trustedRootCertificates": list{child("r", object{"keyVaultSecretId": "https://v/c"})}},
			"ApplicationGatewayTrustedRootCertificateInvalidKeyVaultSecretId", "https://v/c"},
		{"", object{"trustedRootCertificates": list{child("r", object{"data": "eHg="})}},
			"ApplicationGatewayTrustedRootCertificateInvalidData",
			"trustedRootCertificates/r"},
		{"backendHttpSettingsCollection.set", object{"port": 0}, "InvalidPropertyValue", "from 1 to 65535"},
		{"backendHttpSettingsCollection.set", object{"requestTimeout": 86401}, "InvalidPropertyValue", "86401"},
		{"backendHttpSettingsCollection.set", object{"connectionDraining": object{"enabled": true, "drainTimeoutInSec": 3601}},
			"InvalidPropertyValue", "3601"},
		{"backendHttpSettingsCollection.set", object{"hostName": "a", "pickHostNameFromBackendAddress": true},
			"ApplicationGatewayBackendHttpSettingsHostNameAndPickHostName", "set"},
		{"backendHttpSettingsCollection.set", object{"path": "x"}, "ApplicationGatewayBackendHttpSettingsPathInvalid", `"x"`},
		{"backendHttpSettingsCollection.set", object{"protocol": "Https"}, "ApplicationGatewayProbeProtocolMismatch", "probe"},
		{"probes.probe", object{"unhealthyThreshold": 21}, "ApplicationGatewayProbeUnhealthyThresholdIsInvalid",
			"Supported range is [0, 20]"},
		{"probes.probe", object{"interval": 0}, "InvalidPropertyValue", "probes/probe"},
		{"probes.probe", object{"timeout": 86401}, "InvalidPropertyValue", "probes/probe"},
		{"probes.probe", object{"pickHostNameFromBackendHttpSettings": true}, "ApplicationGatewayProbeHostAndPickHostName", "probe"},
		{"probes.probe", object{"host": nil}, "ApplicationGatewayProbeHostIsNull", "probe"},
		{"probes.probe", object{"host": nil, "pickHostNameFromBackendHttpSettings": true},
			"ApplicationGatewayProbeHostNameNotInBackendHttpSettings",
			"set"},
		{"probes.probe", object{"path": "x"}, "ApplicationGatewayProbePathIsInvalid", `"x"`},
		{"probes.probe", object{"match": object{"statusCodes": list{"2xx"}}}, "ApplicationGatewayProbeStatusCodesInvalid", "2xx"},
		{"urlPathMaps.map", object{"pathRules": list{}}, "MissingRequiredProperty", "urlPathMaps/map"},
		{"urlPathMaps.map", object{"defaultBackendHttpSettings": nil}, "ApplicationGatewayUrlPathMapHasNoTarget", "map"},
		{"urlPathMaps.map.pathRules.x", object{"paths": list{"/"}}, "ApplicationGatewayPathRulePathShouldHaveNonEmptyMatchValue",
			"pathRules/x"},
		{"urlPathMaps.map.pathRules.x", object{"paths": list{"x"}}, "ApplicationGatewayPathRulePathInvalid", `"x"`},
		{"urlPathMaps.map.pathRules.x", object{"paths": list{"/*/x"}}, "ApplicationGatewayPathRulePathInvalid", `"/*/x"`},
		{"urlPathMaps.map.pathRules.x", object{"paths": list{"/x?y"}}, "ApplicationGatewayPathRulePathInvalid", `"/x?y"`},
		{"urlPathMaps.map.pathRules.x", object{"redirectConfiguration": part("redirectConfigurations", "redirect")},
			"ApplicationGatewayPathRuleCannotReferenceBackendAddressPool", "pathRules/x cannot reference a BackendAddressPool"},
		{"requestRoutingRules.basic", object{"priority": 10}, "ApplicationGatewayRequestRoutingRulePriorityNotUnique",
			"Priority must be unique across all the request routing rules"},
		{"requestRoutingRules.basic", object{"priority": 20001}, "InvalidPropertyValue", "from 1 to 20000"},
		{"requestRoutingRules.basic", object{"priority": nil}, "ApplicationGatewayRequestRoutingRulePartialPriorityDefined",
			"Either all or no rule"},
		{"requestRoutingRules.basic", object{"httpListener": part("httpListeners", "host")},
			"ApplicationGatewayRequestRoutingRulesUsingSameListener", "httpListeners/host"},
		{"requestRoutingRules.basic", object{"redirectConfiguration": part("redirectConfigurations", "redirect")},
			"ApplicationGatewayRequestRoutingRuleCannotReferenceBackendAddressPool", "basic"},
		{"requestRoutingRules.basic", object{"backendHttpSettings": nil}, "ApplicationGatewayRequestRoutingRuleHasNoTarget", "basic"},
		{"requestRoutingRules.paths", object{"urlPathMap": nil}, "ApplicationGatewayRequestRoutingRuleMustReferenceUrlPathMap", "paths"},
		{"requestRoutingRules.basic", object{"urlPathMap": part("urlPathMaps", "map")},
			"ApplicationGatewayRequestRoutingRuleCannotReferenceUrlPathMap", "basic"},
		{"redirectConfigurations.redirect", object{"targetUrl": nil}, "ApplicationGatewayRedirectConfigurationTargetInvalid", "redirect"},
		{"redirectConfigurations.redirect", object{"targetUrl": "example.com"}, "ApplicationGatewayRedirectConfigurationTargetUrlInvalid",
			"example.com"},
		{"rewriteRuleSets.rewrite", object{"rewriteRules": list{object{"name": "r", "conditions": list{object{"variable": "x",
			"pattern": "x"}}}}},
			"ApplicationGatewayRewriteRuleConditionVariableInvalid", `"x"`},
		{"rewriteRuleSets.rewrite", object{"rewriteRules": list{object{"name": "r", "actionSet": object{
			"requestHeaderConfigurations": list{object{"headerName": "Connection", "headerValue": "x"}}}}}},
			"ApplicationGatewayRewriteRuleHeaderNameInvalid", "Connection"},
		{"rewriteRuleSets.rewrite", object{"rewriteRules": list{object{"name": "r", "actionSet": object{
			"urlConfiguration": object{"modifiedPath": "/y", "reroute": true}}}}},
			"ApplicationGatewayRewriteRuleSetReroutesAlways", "pathRules/x"},
		{"requestRoutingRules.basic", object{"rewriteRuleSet": part("rewriteRuleSets", "again")},
			"ApplicationGatewayBasicRuleCannotReroute", "basic"},
	} {
		got := c.send("PUT", id, edit(document(), r.where, r.changes))
		codes, text := codesOf(got)
		if got.Status != http.StatusBadRequest || !slices.Contains(codes, r.code) || !strings.Contains(text, r.says) {
			t.Errorf("%s %v: %d %v %s\nwant %s, %q", r.where, r.changes, got.Status, codes, text, r.code, r.says)
		}
	}
	if got := c.Request("GET", id, ""); got.Status != http.StatusNotFound {
		t.Errorf("a refused gateway is there: %d", got.Status)
	}
}

// codesOf returns the codes of an error and its details, and the messages.
func codesOf(a behaviourtest.Answer) (codes []string, text string) {
	failure := behaviour.Sub(a.Body, "error")
	for _, e := range append([]behaviour.Object{failure}, behaviour.Objects(failure, "details")...) {
		codes = append(codes, behaviour.Text(e, "code"))
		text += behaviour.Text(e, "message") + " "
	}
	return codes, text
}

// A gateway has its subnet for itself and for other gateways.
func TestSubnets(t *testing.T) {
	c := start(t, core.Options{})
	c.put(networks+"/networkInterfaces/n", object{"location": "eastus", "properties": object{"ipConfigurations": list{child("c",
		object{"subnet": ref(networks + "/virtualNetworks/v/subnets/nodes")})}}})
	got := c.send("PUT", id, edit(document(), "gatewayIPConfigurations.i",
		object{"subnet": ref(networks + "/virtualNetworks/v/subnets/nodes")}))
	if codes, text := codesOf(got); !slices.Contains(codes, "ApplicationGatewaySubnetNotEmpty") || !strings.Contains(text,
		"networkInterfaces/n") {
		t.Errorf("%v %s", codes, text)
	}
	c.put(id, document())
	other := document()
	edit(other, "frontendIPConfigurations.f", object{"publicIPAddress": nil, "subnet": ref(subnet), "privateIPAllocationMethod": "Static",
		"privateIPAddress": "10.0.0.9"})
	text, _ := json.Marshal(other)
	second := strings.ReplaceAll(string(text), "/applicationGateways/g/", "/applicationGateways/h/")
	if got := c.Request("PUT", networks+"/applicationGateways/h", second); got.Status != http.StatusCreated {
		t.Fatalf("a second gateway in the subnet: %d %v", got.Status, got.Body)
	}
	if got := c.Request("PUT", networks+"/applicationGateways/i", strings.ReplaceAll(second, "Gateways/h/", "Gateways/i/")); got.Status !=
		http.StatusBadRequest {
		t.Errorf("a third gateway has the address of the second: %d", got.Status)
	}
}

// An operation that another PUT supersedes ends as Canceled, and the second document is stored.
func TestSupersededPUT(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := start(t, core.Options{Latency: 1})
		<-time.After(time.Minute)
		first := c.send("PUT", id, document())
		if state := behaviour.Text(first.Body, "properties.operationalState"); first.Status != http.StatusCreated || state != "Stopped" {
			t.Errorf("a gateway in its creation: %d, %s", first.Status, state)
		}
		if got := c.send("PUT", id, edit(document(), "frontendPorts.https", object{"port": 444})); got.Status != http.StatusOK {
			t.Fatalf("the second PUT: %d %v", got.Status, got.Body)
		}
		poll := c.Request("GET", first.Header.Get("Azure-AsyncOperation"), "").Body
		if status, code := behaviour.Text(poll, "status"), behaviourtest.At(poll, "error.details.0.code"); status != "Canceled" ||
			code != "CanceledAndSupersededDueToAnotherOperation" {
			t.Errorf("the first operation: %v", poll)
		}
		<-time.After(time.Hour)
		got := c.Request("GET", id, "").Body
		if port := behaviourtest.At(got, "properties.frontendPorts.1.properties.port"); !behaviour.Equal(port, 444) ||
			behaviour.Text(got, "properties.provisioningState") != "Succeeded" || behaviour.Text(got,
			"properties.operationalState") != "Running" {
			t.Errorf("after both: port %v, %v", port, got)
		}
	})
}

// A client of an older API version does not see newer members, and its PUT loses them.
func TestOlderVersions(t *testing.T) {
	c := start(t, core.Options{})
	const newest, oldest = id + "?api-version=2025-05-01", id + "?api-version=2024-05-01"
	doc := edit(document(), "backendHttpSettingsCollection.set", object{"sniName": "a.example.com"})
	if codes, text := codesOf(c.send("PUT", oldest, doc)); !slices.Contains(codes, "InvalidJson") || !strings.Contains(text, "'sniName'") {
		t.Errorf("a newer member in an older version: %v %s", codes, text)
	}
	if got := c.send("PUT", newest, doc); got.Status != http.StatusCreated {
		t.Fatalf("%d %v", got.Status, got.Body)
	}
	name := func(version string) any {
		return behaviourtest.At(c.Request("GET", version, "").Body, "properties.backendHttpSettingsCollection.0.properties.sniName")
	}
	if name(newest) != "a.example.com" || name(oldest) != nil {
		t.Errorf("the newest version shows %v, an older one %v", name(newest), name(oldest))
	}
	if got := c.send("PUT", oldest, c.Request("GET", oldest, "").Body); got.Status != http.StatusOK {
		t.Fatalf("%d %v", got.Status, got.Body)
	}
	if name(newest) != nil {
		t.Errorf("after a PUT of an older version the newest shows %v", name(newest))
	}
}

// A PUT starts a gateway that is stopped.
func TestOperationalState(t *testing.T) {
	c := start(t, core.Options{})
	c.put(id, document())
	state := func(want string) {
		t.Helper()
		if had := behaviour.Text(c.Request("GET", id, "").Body, "properties.operationalState"); had != want {
			t.Errorf("the gateway is %s, want %s", had, want)
		}
	}
	state("Running")
	for action, want := range map[string]string{"stop": "Stopped", "start": "Running"} {
		if got := c.Request("POST", id+"/"+action, ""); got.Status != http.StatusAccepted {
			t.Errorf("%s: %d", action, got.Status)
		}
		state(want)
	}
	c.Request("POST", id+"/stop", "")
	c.Request("PATCH", id, `{"tags":{"a":"b"}}`)
	state("Stopped")
	c.put(id, document())
	state("Running")
}
