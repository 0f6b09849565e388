package contract

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/msi/armmsi"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"software.sslmate.com/src/go-pkcs12"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/appgateway"
	"kaz/internal/localazure/core"
)

// gatewayExamples reads the examples of application gateways in the module of the official client.
func gatewayExamples(t testing.TB) *examples {
	return readExamples(t, armnetwork.PossibleProvisioningStateValues, "applicationgateways_client_example_test.go")
}

// exampleGroup is the resource group of the examples.
const exampleGroup = "rg1"

// exampleCertificate is a PFX with its password, and the certificate in it, in base64.
func exampleCertificate(t testing.TB, password string) (pfx, der string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "User1", Organization: []string{"Company Ltd"}},
		NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	data, err := pkcs12.Modern.Encode(key, leaf, nil, password)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(data), base64.StdEncoding.EncodeToString(raw)
}

// here puts the subscription of the local Azure into the ids of an example.
func here[T any](t testing.TB, example T) T {
	t.Helper()
	text, err := json.Marshal(example)
	if err != nil {
		t.Fatal(err)
	}
	var made T
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "/subscriptions/subid/", "/subscriptions/"+subscription+"/")),
		&made); err != nil {
		t.Fatal(err)
	}
	return made
}

// asMap is a model as it is sent.
func asMap(t testing.TB, model any) map[string]any {
	t.Helper()
	text, err := json.Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	var made map[string]any
	if err := json.Unmarshal(text, &made); err != nil {
		t.Fatal(err)
	}
	return made
}

// makeFor makes what the examples refer to: a network with its subnet, a public IP address and an identity.
func (a *local) makeFor(network, subnet, public string) {
	a.Helper()
	_, err := ended(a.network.NewVirtualNetworksClient().BeginCreateOrUpdate(a.Context(), exampleGroup, network, armnetwork.VirtualNetwork{
		Location: new(region), Properties: &armnetwork.VirtualNetworkPropertiesFormat{
			AddressSpace: &armnetwork.AddressSpace{AddressPrefixes: []*string{new("10.0.0.0/16")}},
			Subnets: []*armnetwork.Subnet{{Name: new(subnet),
				Properties: &armnetwork.SubnetPropertiesFormat{AddressPrefix: new("10.0.3.0/24")}}}}}, nil))
	a.must(err)
	_, err = ended(a.network.NewPublicIPAddressesClient().BeginCreateOrUpdate(a.Context(), exampleGroup, public,
		armnetwork.PublicIPAddress{Location: new(region),
			SKU:        &armnetwork.PublicIPAddressSKU{Name: new(armnetwork.PublicIPAddressSKUNameStandard)},
			Properties: &armnetwork.PublicIPAddressPropertiesFormat{PublicIPAllocationMethod: new(armnetwork.IPAllocationMethodStatic)}}, nil))
	a.must(err)
}

func (a *local) makeIdentity(name string) {
	a.Helper()
	_, err := clients(a, armmsi.NewClientFactory).NewUserAssignedIdentitiesClient().CreateOrUpdate(a.Context(), exampleGroup, name,
		armmsi.Identity{Location: new(region)}, nil)
	a.must(err)
}

// putExample sends an example's gateway.
func (a *local) putExample(name string, g armnetwork.ApplicationGateway) (armnetwork.ApplicationGateway, error) {
	done, err := ended(a.network.NewApplicationGatewaysClient().BeginCreateOrUpdate(a.Context(), exampleGroup, name, g, nil))
	return done.ApplicationGateway, err
}

// because wants the example to be refused with a code in the error.
func (a *local) because(err error, code string) {
	a.Helper()
	if refusal := a.refusal(err, http.StatusBadRequest); !strings.Contains(refusal.Error(), code) {
		a.Errorf("the example is refused, but not with %s: %v", code, refusal)
	}
}

// TestGatewayExample deploys the documented example of a gateway. What cannot be true of any Azure is refused first: data that is no
// certificate, the id of a secret without a key vault, and references to what is not there.
func TestGatewayExample(t *testing.T) {
	e := gatewayExamples(t)
	gateway := here(t, argument[armnetwork.ApplicationGateway](e, "BeginCreateOrUpdate", 3))
	tags := argument[armnetwork.TagsObject](e, "UpdateTags", 3)
	inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
		a.groupNamed(exampleGroup)
		a.makeIdentity("identity1")
		deployExample(a, &gateway)

		client := a.network.NewApplicationGatewaysClient()
		listed, err := every(client.NewListPager(exampleGroup, nil),
			func(p armnetwork.ApplicationGatewaysClientListResponse) []*armnetwork.ApplicationGateway {
				return p.Value
			})
		a.must(err)
		everywhere, err := every(client.NewListAllPager(nil),
			func(p armnetwork.ApplicationGatewaysClientListAllResponse) []*armnetwork.ApplicationGateway {
				return p.Value
			})
		a.must(err)
		if len(listed) != 1 || len(everywhere) != 1 {
			a.Errorf("%d gateways in the group and %d in the subscription", len(listed), len(everywhere))
		}
		tagged, err := client.UpdateTags(a.Context(), exampleGroup, argument[string](e, "UpdateTags", 2), tags, nil)
		a.must(err)
		if missing := lacks("tags", asMap(a, tags)["tags"], asMap(a, tagged.ApplicationGateway)["tags"]); len(missing) > 0 {
			a.Error(missing)
		}
		for _, step := range []struct {
			run  func() error
			want armnetwork.ApplicationGatewayOperationalState
		}{
			{func() error { return gone(client.BeginStop(a.Context(), exampleGroup, "appgw", nil)) },
				armnetwork.ApplicationGatewayOperationalStateStopped},
			{func() error { return gone(client.BeginStart(a.Context(), exampleGroup, "appgw", nil)) },
				armnetwork.ApplicationGatewayOperationalStateRunning},
		} {
			a.must(step.run())
			got, err := client.Get(a.Context(), exampleGroup, "appgw", nil)
			a.must(err)
			has(a, "the state", got.Properties.OperationalState, step.want)
		}
		healthOfExample(a)
		a.must(gone(client.BeginDelete(a.Context(), exampleGroup, "appgw", nil)))
		_, err = client.Get(a.Context(), exampleGroup, "appgw", nil)
		a.refused(err, http.StatusNotFound, "ResourceNotFound")
	})
}

// deployExample makes an example true step by step, deploys it and reads it.
func deployExample(a *local, gateway *armnetwork.ApplicationGateway) {
	a.Helper()
	const vaultSecret = "https://kv.vault.azure.net/secrets/secret"
	p := gateway.Properties
	_, err := a.putExample("appgw", *gateway)
	a.because(err, "ApplicationGatewaySslCertificateInvalidData")
	pfx, der := exampleCertificate(a, "secret")
	p.SSLCertificates[0].Properties.Data, p.SSLCertificates[0].Properties.Password = &pfx, new("secret")
	_, err = a.putExample("appgw", *gateway)
	a.because(err, "ApplicationGatewaySslCertificateInvalidKeyVaultSecretId")
	p.SSLCertificates[1].Properties.KeyVaultSecretID = new(vaultSecret)
	_, err = a.putExample("appgw", *gateway)
	a.because(err, "ApplicationGatewayTrustedRootCertificateInvalidData")
	p.TrustedClientCertificates[0].Properties.Data, p.TrustedRootCertificates[0].Properties.Data = &der, &der
	_, err = a.putExample("appgw", *gateway)
	a.because(err, "ApplicationGatewayTrustedRootCertificateInvalidKeyVaultSecretId")
	p.TrustedRootCertificates[1].Properties.KeyVaultSecretID = new(vaultSecret)
	_, err = a.putExample("appgw", *gateway)
	a.because(err, "InvalidResourceReference")
	a.makeFor("vnet", "appgwsubnet", "appgwpip")
	unknown := *p.RequestRoutingRules[0].Properties.EntraJWTValidationConfig.ID + "2"
	known := p.RequestRoutingRules[0].Properties.EntraJWTValidationConfig.ID
	p.RequestRoutingRules[0].Properties.EntraJWTValidationConfig.ID = &unknown
	_, err = a.putExample("appgw", *gateway)
	a.because(err, "InvalidResourceReference")
	p.RequestRoutingRules[0].Properties.EntraJWTValidationConfig.ID = known

	made, err := a.putExample("appgw", *gateway)
	a.must(err)
	read, err := a.network.NewApplicationGatewaysClient().Get(a.Context(), exampleGroup, "appgw", nil)
	a.must(err)
	p.SSLCertificates[0].Properties.Data, p.SSLCertificates[0].Properties.Password = nil, nil // never shown
	for _, got := range []armnetwork.ApplicationGateway{made, read.ApplicationGateway} {
		if missing := lacks("", asMap(a, gateway), asMap(a, got)); len(missing) > 0 {
			a.Errorf("the gateway lacks\n%s", strings.Join(missing, "\n"))
		}
	}
	a.checkCertificates(read.ApplicationGateway, der)
}

// healthOfExample reads the health of the example's backends, which the data plane has found.
func healthOfExample(a *local) {
	a.Helper()
	err := a.Do(func(w behaviour.World) error {
		w.Edit(azure.GroupID(subscription, exampleGroup).Resource("Microsoft.Network/applicationGateways", "appgw"), func(doc behaviour.Object) {
			appgateway.SetHealth(doc, []appgateway.Health{{Pool: "appgwpool", Setting: "appgwbhs", Address: "10.0.1.2", State: "Unhealthy"},
				{Pool: "appgwpool", Setting: "appgwbhs", Address: "10.0.1.1", State: "Healthy"}})
		})
		return nil
	})
	a.must(err)
	got, err := ended(a.network.NewApplicationGatewaysClient().BeginBackendHealth(a.Context(), exampleGroup, "appgw", nil))
	a.must(err)
	var servers []string
	for _, pool := range got.BackendAddressPools {
		for _, set := range pool.BackendHTTPSettingsCollection {
			for _, s := range set.Servers {
				servers = append(servers, azure.ID(*pool.BackendAddressPool.ID).Name()+" "+azure.ID(*set.BackendHTTPSettings.ID).Name()+" "+
					*s.Address+" "+string(*s.Health))
			}
		}
	}
	want := []string{"appgwpool appgwbhs 10.0.1.1 Healthy", "appgwpool appgwbhs 10.0.1.2 Unhealthy"}
	if len(got.BackendAddressPools) != 2 || !slices.Equal(servers, want) {
		a.Errorf("%d pools, with %q, want %q", len(got.BackendAddressPools), servers, want)
	}
	// A probe on demand would measure.
	_, err = ended(a.network.NewApplicationGatewaysClient().BeginBackendHealthOnDemand(a.Context(), exampleGroup, "appgw",
		armnetwork.ApplicationGatewayOnDemandProbe{Path: new("/")}, nil))
	if refused := a.refusal(err, http.StatusNotFound); refused.ErrorCode == "" {
		a.Error("a probe on demand is refused without a code")
	}
}

// checkCertificates checks what Azure shows of certificates besides what was sent.
func (a *local) checkCertificates(g armnetwork.ApplicationGateway, der string) {
	a.Helper()
	if public := g.Properties.SSLCertificates[0].Properties.PublicCertData; public == nil || *public == "" {
		a.Error("the certificate of the listener has no publicCertData")
	}
	client := g.Properties.TrustedClientCertificates[0].Properties
	has(a, "the issuer of the client certificate", client.ClientCertIssuerDN, "CN=User1, O=Company Ltd")
	has(a, "the client certificate that was checked", client.ValidatedCertData, der)
}

// TestGatewayExampleAnswers deploys the gateways that the examples show in answers. They are less careful than requests: a size of the
// first version beside parts of the second one, two targets with one name, backend addresses without an address.
func TestGatewayExampleAnswers(t *testing.T) {
	e := gatewayExamples(t)
	documents := map[string]armnetwork.ApplicationGateway{
		"get":    answer[armnetwork.ApplicationGateway](e, "Get"),
		"create": answer[armnetwork.ApplicationGateway](e, "BeginCreateOrUpdate"),
		"tags":   answer[armnetwork.ApplicationGateway](e, "UpdateTags"),
	}
	for i, g := range answer[armnetwork.ApplicationGatewayListResult](e, "NewListPager").Value {
		documents["list"+strings.Repeat("'", i)] = *g
	}
	for i, g := range answer[armnetwork.ApplicationGatewayListResult](e, "NewListAllPager").Value {
		documents["list all"+strings.Repeat("'", i)] = *g
	}
	for name, document := range documents {
		t.Run(name, func(t *testing.T) {
			gateway := here(t, document)
			inBubble(t, core.Options{Latency: asOnAzure}, func(a *local) {
				a.groupNamed(exampleGroup)
				subnet := azure.ID(*gateway.Properties.GatewayIPConfigurations[0].Properties.Subnet.ID)
				public := azure.ID(*gateway.Properties.FrontendIPConfigurations[0].Properties.PublicIPAddress.ID)
				a.makeFor(subnet.Parent().Name(), subnet.Name(), public.Name())
				makeTrue(a, &gateway)
				done, err := a.putExample(*gateway.Name, gateway)
				a.must(err)
				withoutSecrets(&gateway)
				if missing := lacks("", asMap(a, gateway), asMap(a, done)); len(missing) > 0 {
					a.Errorf("the gateway lacks\n%s", strings.Join(missing, "\n"))
				}
			})
		})
	}
}

// makeTrue gives a gateway that an example shows what only a request has, and what Azure would not take otherwise.
func makeTrue(a *local, g *armnetwork.ApplicationGateway) {
	a.Helper()
	p := g.Properties
	pfx, der := exampleCertificate(a, "secret")
	g.Location, p.ResourceGUID = new(region), nil
	p.SKU.Name, p.SKU.Tier = new(armnetwork.ApplicationGatewaySKUNameStandardV2), new(armnetwork.ApplicationGatewayTierStandardV2)
	for _, c := range p.SSLCertificates {
		c.Properties.Data, c.Properties.Password, c.Properties.PublicCertData = &pfx, new("secret"), nil
	}
	for _, c := range p.TrustedClientCertificates {
		c.Properties.Data, c.Properties.ValidatedCertData, c.Properties.ClientCertIssuerDN = &der, nil, nil
	}
	for _, pool := range p.BackendAddressPools {
		for i, address := range pool.Properties.BackendAddresses {
			if address.IPAddress == nil && address.Fqdn == nil {
				pool.Properties.BackendAddresses[i].IPAddress = new("10.0.4." + string(rune('1'+i)))
			}
		}
	}
	for i, r := range p.RequestRoutingRules {
		r.Properties.Priority = new(int32(10 + i))
	}
	for _, policy := range p.LoadDistributionPolicies {
		for i, target := range policy.Properties.LoadDistributionTargets {
			target.Name, target.ID = new("target"+string(rune('1'+i))), nil
		}
	}
	for _, link := range p.PrivateLinkConfigurations {
		for _, address := range link.Properties.IPConfigurations {
			address.ID = nil // the example repeats a part of its path
		}
	}
}

// withoutSecrets removes what no answer shows.
func withoutSecrets(g *armnetwork.ApplicationGateway) {
	for _, c := range g.Properties.SSLCertificates {
		c.Properties.Data, c.Properties.Password = nil, nil
	}
}
