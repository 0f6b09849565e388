package gateway_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/core"
	localgateway "kaz/internal/localazure/plane/gateway"
	"kaz/internal/testkit"
)

// vaulted is a certificate in a key vault.
type vaulted struct {
	*cluster
	vault azure.ID
}

const inVault = "https://certificates.vault.azure.net/secrets/web"

// newVaulted makes a key vault, and an application gateway with an identity and a certificate that refers to the vault.
func newVaulted(w *cluster) vaulted {
	v := vaulted{w, testkit.Group + "/providers/Microsoft.KeyVault/vaults/certificates"}
	w.Put(v.vault, object{"location": testkit.Location, "properties": object{
		"tenantId": core.DefaultTenant, "sku": object{"family": "A", "name": "standard"}, "accessPolicies": []object{},
	}})
	identity := testkit.Group + "/providers/Microsoft.ManagedIdentity/userAssignedIdentities/gate"
	w.Put(identity, object{"location": testkit.Location})
	v.renew()
	w.edit(func(g object) {
		g["identity"] = object{"type": "UserAssigned", "userAssignedIdentities": object{string(identity): object{}}}
		g["properties"].(object)["sslCertificates"] = []object{{"name": "installed", "properties": object{"keyVaultSecretId": inVault}}}
	})
	return v
}

// renew puts a new certificate into the vault, and returns it.
func (v vaulted) renew() *x509.Certificate {
	v.t.Helper()
	certificate, key := issue(v.t)
	v.Put(v.vault+"/secrets/web", object{"properties": object{"value": string(certificate) + string(key)}})
	block, _ := pem.Decode(certificate)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		v.t.Fatal(err)
	}
	return leaf
}

// TestKeyVault serves an Ingress with a certificate of the gateway that is in a key vault. The gateway renews it by itself, and writes of
// the controller keep the reference and the gateway's identity.
func TestKeyVault(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "hello") }))
	defer backend.Close()
	w := newCluster(t, core.Options{}, append(service("web", "10.240.0.10"), class(),
		web("web", "a.example.com", "web", 1, "appgw-ssl-certificate", "installed"))...)
	v := newVaulted(w)
	first := v.renew()
	loopback := &localgateway.Loopback{Backends: func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", backend.Listener.Addr().String())
	}}
	plane := localgateway.Start(t.Context(), localgateway.Options{Azure: w.Emulator, Network: loopback, Log: slog.New(slog.DiscardHandler)})
	defer func() {
		if err := plane.Close(); err != nil {
			t.Error(err)
		}
	}()
	child := withoutEtag(w.raw("sslCertificates", "installed"))
	w.config.Calm = time.Millisecond
	w.run(t)
	defer w.stop()
	w.shows(loopback, first)
	for n := range 3 {
		before := w.WritesBy("PUT")
		update(w, endpoints("web", fmt.Sprintf("10.240.0.%d", 20+n)))
		w.eventually("the endpoint is written", func() bool {
			return w.WritesBy("PUT") > before && strings.Contains(w.backends(), fmt.Sprintf("10.240.0.%d ", 20+n))
		})
	}
	w.Forget()
	w.shows(loopback, v.renew())
	want(t, "writes for a renewed certificate", len(w.Writes()), 1) // that of the vault
	// the child also shows what refers to it, since the Ingress uses it
	if now := withoutEtag(w.raw("sslCertificates", "installed")); !strings.Contains(now, inVault) || !strings.Contains(child, inVault) {
		t.Errorf("the certificate is %s, was %s", now, child)
	}
	doc, err := w.Client.Fresh().Get(t.Context(), gatewayID)
	if err != nil || !strings.Contains(string(doc), "userAssignedIdentities/gate") {
		t.Errorf("the gateway has lost its identity: %v", err)
	}
}

// shows waits until the gateway shows clients a certificate.
func (w *cluster) shows(loopback *localgateway.Loopback, wanted *x509.Certificate) {
	w.t.Helper()
	w.eventually("the certificate is served", func() bool {
		raw, err := loopback.Reach(w.t.Context(), "tcp", net.JoinHostPort(w.address, "443"))
		if err != nil {
			return false
		}
		c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, ServerName: "a.example.com"})
		defer func() { _ = c.Close() }() // nothing is lost
		return c.HandshakeContext(w.t.Context()) == nil && c.ConnectionState().PeerCertificates[0].Equal(wanted)
	})
}

// eventually waits in real time until something holds.
func (w *cluster) eventually(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-time.After(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("it does not become true that %s\n%s", what, w.log)
		}
	}
}
