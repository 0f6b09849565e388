package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
)

// TestAttestedDocument checks the signed document of a machine with openssl. Only the machine itself gets it.
func TestAttestedDocument(t *testing.T) {
	a := startServer(t, Options{})
	cluster := createSite(t, a, 2)
	machine := cluster.ScaleSet("nodes0").Child("virtualMachines", "1")
	base := a.Info().ARMHTTP + "/vm" + string(machine)
	const path = "/metadata/attested/document?api-version=2021-02-01&nonce=0123456789abcdef0123456789abcdef"
	service := a.Metadata(machine.Child("networkInterfaces", "nic"))
	status, body := asMachine(t, service, "http://169.254.169.254"+path)
	if status != http.StatusOK || body["encoding"] != "pkcs7" {
		t.Fatalf("%d %v", status, body)
	}
	_, instance := metadataOf(t, base, "/metadata/instance?api-version=2021-02-01", "Metadata", "true")
	content := verified(t, a, body["signature"].(string))
	if content["nonce"] != "0123456789abcdef0123456789abcdef" || content["subscriptionId"] != cluster.Subscription ||
		content["vmId"] == "" || content["vmId"] != behaviour.At(instance, "compute.vmId") {
		t.Errorf("%v", content)
	}
	for query, want := range map[string]int{path: 200, path + "0": 400, "/metadata/attested/document": 400,
		"/metadata/attested/document?api-version=2021-02-01": 200, "/metadata/attested?api-version=2021-02-01": 404} {
		if status, body := asMachine(t, service, "http://169.254.169.254"+query); status != want {
			t.Errorf("%s: %d %v, want %d", query, status, body, want)
		}
	}
	// At the shared address, which every program reaches, the document needs the secret.
	for _, c := range []struct {
		base   string
		header []string
		status int
	}{
		{base, []string{"Metadata", "true"}, 403},
		{base, []string{"Metadata", "true", "X-IDENTITY-HEADER", "guess"}, 403},
		{base, []string{"Metadata", "true", "X-IDENTITY-HEADER", a.Info().IdentityHeader}, 200},
		{base, []string{"X-IDENTITY-HEADER", a.Info().IdentityHeader}, 400},
		{base + "9", []string{"Metadata", "true", "X-IDENTITY-HEADER", a.Info().IdentityHeader}, 404},
		{a.Info().ARMHTTP, []string{"Metadata", "true"}, 403},
		{a.Info().ARMHTTP, []string{"Metadata", "true", "X-IDENTITY-HEADER", a.Info().IdentityHeader}, 404},
	} {
		if status, body := metadataOf(t, c.base, path, c.header...); status != c.status {
			t.Errorf("%s %v: %d %v, want %d", c.base, c.header, status, body, c.status)
		}
	}
}

// verified is the content of a signed document, of which openssl checks the signature and its certificate.
func verified(t *testing.T, a *Server, signature string) (content map[string]any) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("the check needs openssl")
	}
	der, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, signer := filepath.Join(dir, "signed"), filepath.Join(dir, "signer.pem")
	if err := os.WriteFile(file, der, 0o600); err != nil {
		t.Fatal(err)
	}
	var problems bytes.Buffer
	verify := exec.CommandContext(t.Context(), "openssl", "cms", "-verify", "-inform", "DER", "-in", file, "-CAfile", a.Info().CAFile,
		"-purpose", "any", "-signer", signer)
	verify.Stderr = &problems
	text, err := verify.Output()
	if err != nil {
		t.Fatalf("openssl cms -verify: %v %s", err, problems.String())
	}
	names, err := exec.CommandContext(t.Context(), "openssl", "x509", "-noout", "-ext", "subjectAltName", "-in", signer).CombinedOutput()
	if err != nil || !strings.Contains(string(names), "DNS:metadata.azure.com") {
		t.Errorf("the signer: %v %s", err, names)
	}
	if err := json.Unmarshal(text, &content); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return content
}
