package probe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"math/big"
	"net/http"
	"strings"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

// gateway is the fixture with an application gateway.
const (
	gateway     = "gateway"
	gatewayType = "Microsoft.Network/applicationGateways"
)

func gatewayProbes() []Probe {
	const area = "gateways"
	needs := []string{network, gateway}
	return []Probe{
		{
			Name: "gateway-etag", Area: area, Minutes: 2, Needs: needs, Run: gatewayEtag,
			Tries: "PUT an application gateway with an old ETag; want 412",
		},
		{
			Name: "gateway-certificate", Area: area, Minutes: 3, Needs: needs, Run: gatewayCertificate,
			Tries: "add a certificate as PFX by 3DES, and write the gateway again with the certificate without data; want success",
		},
		{
			Name: "gateway-refusal", Area: area, Minutes: 1, Needs: needs, Run: gatewayRefusal,
			Tries: "add a rule with the priority of another one; want a refusal whose text or target has the name of the rule",
		},
		{
			Name: "gateway-server-name", Area: area, Minutes: 2, Needs: needs, Run: gatewayServerName,
			Tries: "add settings with sniName and without hostName; want success, and that a read shows it",
		},
		{
			Name: "gateway-distribution", Area: area, Minutes: 2, Needs: needs, Run: gatewayDistribution,
			Tries: "add a load distribution policy with weightPerServer; want success",
		},
		{
			Name: "gateway-streams", Area: area, Minutes: 3, Needs: needs, Run: gatewayStreams,
			Tries: "add a listener of TLS with hostNames and settings of TCP; want success, and that backendhealth leaves them out",
		},
	}
}

func gatewayID(b *bench.Bench) azure.ID { return shared(b, gatewayType, "gateway") }

// part refers to a part of the gateway.
func part(b *bench.Bench, of, name string) object { return ref(gatewayID(b).Child(of, name)) }

func makeGateway(ctx context.Context, b *bench.Bench) {
	ip := shared(b, pipType, "gateway")
	b.Make(ctx, ip, sku("Standard", at(b, object{"publicIPAllocationMethod": "Static"})))
	b.Make(ctx, gatewayID(b), at(b, object{
		"sku":                      object{"name": "Standard_v2", "tier": "Standard_v2", "capacity": 1},
		"gatewayIPConfigurations":  list{child("ip", object{"subnet": ref(vnet(b).Child("subnets", "gateways"))})},
		"frontendIPConfigurations": list{child("front", object{"publicIPAddress": ref(ip)})},
		"frontendPorts":            list{child("http", object{"port": 80}), child("tls", object{"port": 8443})},
		"backendAddressPools":      list{child("pool", object{"backendAddresses": list{object{"ipAddress": "10.77.0.100"}}})},
		"backendHttpSettingsCollection": list{child("settings", object{
			"port": 80, "protocol": "Http", "cookieBasedAffinity": "Disabled", "requestTimeout": 20,
		})},
		"httpListeners": list{child("listener", object{
			"protocol": "Http", "frontendIPConfiguration": part(b, "frontendIPConfigurations", "front"), "frontendPort": part(b,
				"frontendPorts", "http"),
		})},
		"requestRoutingRules": list{rule(b, "rule", 100, "listener")},
	}))
}

func rule(b *bench.Bench, name string, priority int, listener string) object {
	return child(name, object{
		"ruleType": "Basic", "priority": priority, "httpListener": part(b, "httpListeners", listener),
		"backendAddressPool": part(b, "backendAddressPools", "pool"), "backendHttpSettings": part(b, "backendHttpSettingsCollection",
			"settings"),
	})
}

// changed is the gateway as it is, with more children.
func changed(ctx context.Context, b *bench.Bench, children map[string]object) object {
	tree := bench.Tree(b.Get(ctx, gatewayID(b)))
	properties, _ := tree["properties"].(object)
	if properties == nil {
		return tree // the probe has ended
	}
	for of, c := range children {
		there, _ := properties[of].(list)
		properties[of] = append(there, c)
	}
	return tree
}

// restored writes the gateway as it was before a probe, so that the next one finds it so.
func restored(ctx context.Context, b *bench.Bench, before azure.Document) {
	b.Make(ctx, gatewayID(b), before)
}

func gatewayEtag(ctx context.Context, b *bench.Bench) {
	old := b.Get(ctx, gatewayID(b))
	b.Make(ctx, gatewayID(b), changed(ctx, b, map[string]object{"frontendPorts": child("new", object{"port": 8080})}))
	a := b.Try(ctx, azure.Put, gatewayID(b), old, bench.IfMatch(old.Etag()))
	b.Agree(old.Etag() != "" && a.Refused(http.StatusPreconditionFailed), "PUT with an old ETag: %s", a)
	restored(ctx, b, old)
}

// Certificate returns a new certificate that signs itself, as PFX with the encryption that kaz uses, in base64.
func Certificate(password string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	const days = 30
	now := time.Now()
	plain := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "kaz-verify.example.net"},
		DNSNames: []string{"kaz-verify.example.net"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, days),
	}
	der, err := x509.CreateCertificate(rand.Reader, plain, plain, key.Public(), key)
	if err != nil {
		return "", err
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		return "", err
	}
	file, err := pkcs12.LegacyDES.Encode(key, signed, nil, password)
	return base64.StdEncoding.EncodeToString(file), err
}

// withCertificate is a new certificate as a child of the gateway.
func withCertificate(b *bench.Bench) object {
	secret := password()
	data, err := Certificate(secret)
	if err != nil {
		b.Fail(err)
	}
	return child("certificate", object{"data": data, "password": secret})
}

func gatewayCertificate(ctx context.Context, b *bench.Bench) {
	before := b.Get(ctx, gatewayID(b))
	a := b.Try(ctx, azure.Put, gatewayID(b), changed(ctx, b, map[string]object{"sslCertificates": withCertificate(b)}))
	b.Agree(!a.Failed, "PUT with a PFX file by 3DES and SHA-1: %s", a)
	const at = "properties.sslCertificates.0.properties."
	doc := b.Get(ctx, gatewayID(b))
	b.Agree(!bench.Has(doc, at+"data") && !bench.Has(doc, at+"password"), "the GET shows the certificate's data: %t", bench.Has(doc,
		at+"data"))
	a = b.Try(ctx, azure.Put, gatewayID(b), doc)
	kept := bench.Text(b.Get(ctx, gatewayID(b)), at+"publicCertData") == bench.Text(doc, at+"publicCertData")
	b.Agree(!a.Failed && kept, "PUT of the certificate without data: %s; it has the same public part: %t", a, kept)
	restored(ctx, b, before)
}

func gatewayRefusal(ctx context.Context, b *bench.Bench) {
	body := changed(ctx, b, map[string]object{
		"httpListeners": child("kaz-other", object{
			"protocol": "Http", "hostName": "other.example.net", "frontendIPConfiguration": part(b, "frontendIPConfigurations", "front"),
			"frontendPort": part(b, "frontendPorts", "http"),
		}),
		"requestRoutingRules": rule(b, "kaz-clash", 100, "kaz-other"),
	})
	a := b.Try(ctx, azure.Put, gatewayID(b), body)
	named := strings.Contains(a.Message, "kaz-clash") || strings.Contains(string(a.First), "kaz-clash")
	b.Agree(a.Failed && named, "PUT with two rules of one priority: %s; the answer names the rule: %t", a, named)
}

func gatewayServerName(ctx context.Context, b *bench.Bench) {
	before := b.Get(ctx, gatewayID(b))
	a := b.Try(ctx, azure.Put, gatewayID(b), changed(ctx, b, map[string]object{"backendHttpSettingsCollection": child("sni", object{
		"port": 443, "protocol": "Https", "cookieBasedAffinity": "Disabled", "requestTimeout": 20, "sniName": "backend.example.net",
	})}))
	shown := strings.Contains(string(b.Get(ctx, gatewayID(b))), "backend.example.net")
	b.Agree(!a.Failed && shown, "PUT of settings with sniName and without hostName: %s; a read shows the name: %t", a, shown)
	restored(ctx, b, before)
}

func gatewayDistribution(ctx context.Context, b *bench.Bench) {
	before := b.Get(ctx, gatewayID(b))
	a := b.Try(ctx, azure.Put, gatewayID(b), changed(ctx, b, map[string]object{"loadDistributionPolicies": child("shares", object{
		"loadDistributionAlgorithm": "RoundRobin", "loadDistributionTargets": list{child("one", object{
			"weightPerServer": 3, "backendAddressPool": part(b, "backendAddressPools", "pool"),
		})},
	})}))
	b.Agree(!a.Failed, "PUT with a load distribution policy: %s", a)
	restored(ctx, b, before)
}

func gatewayStreams(ctx context.Context, b *bench.Bench) {
	before := b.Get(ctx, gatewayID(b))
	a := b.Try(ctx, azure.Put, gatewayID(b), changed(ctx, b, map[string]object{
		"sslCertificates": withCertificate(b),
		"listeners": child("stream", object{
			"protocol": "Tls", "hostNames": list{"stream.example.net"}, "sslCertificate": part(b, "sslCertificates", "certificate"),
			"frontendIPConfiguration": part(b, "frontendIPConfigurations", "front"), "frontendPort": part(b, "frontendPorts", "tls"),
		}),
		"backendSettingsCollection": child("stream", object{"port": 9000, "protocol": "Tcp", "timeout": 3600}),
		"routingRules": child("stream", object{
			"ruleType": "Basic", "priority": 200, "listener": part(b, "listeners", "stream"),
			"backendAddressPool": part(b, "backendAddressPools", "pool"), "backendSettings": part(b, "backendSettingsCollection", "stream"),
		}),
	}))
	b.Agree(!a.Failed, "PUT with a listener of TLS with hostNames, and settings of TCP of 3600 s: %s", a)
	health := b.Act(ctx, gatewayID(b), "backendhealth", nil)
	shown := strings.Contains(string(health.Body), "backendSettingsCollection/stream")
	b.Agree(!health.Failed && !shown, "backendhealth: %s; it shows the settings of TCP: %t", health, shown)
	restored(ctx, b, before)
}
