package client

import (
	"os/exec"
	"strings"
	"testing"
)

func example() Info {
	return Info{ARM: "https://127.0.0.1:8443", ARMHTTP: "http://127.0.0.1:8080", CAFile: "/tmp/it's here/ca.pem", Tenant: "tenant",
		Subscription: "subscription", ClientID: "client", ClientSecret: "se'cret$HOME", Proxy: "http://127.0.0.1:8081",
		IdentityEndpoint: "http://127.0.0.1:8080/msi/token", IdentityHeader: "header"}
}

// TestEnvironment checks what a shell has after it read the lines for each kind of client.
func TestEnvironment(t *testing.T) {
	plain := example()
	plain.Proxy = ""
	for name, test := range map[string]struct {
		info Info
		kind string
		want map[string]string
	}{
		"shell": {example(), "shell", map[string]string{"AZURE_CLIENT_SECRET": "se'cret$HOME", "AZURE_TENANT_ID": "tenant",
			"HTTPS_PROXY": "http://127.0.0.1:8081", "SSL_CERT_FILE": "/tmp/it's here/ca.pem", "AZURE_AUTHORITY_HOST": "",
			"IDENTITY_HEADER": "header", "KAZ_LOCAL_AZURE": "https://127.0.0.1:8443", "NO_PROXY": "127.0.0.1,localhost,::1"}},
		"without proxy": {plain, "shell", map[string]string{"AZURE_TENANT_ID": "adfs", "HTTPS_PROXY": "", "NO_PROXY": "",
			"AZURE_AUTHORITY_HOST": "https://127.0.0.1:8443"}},
		"terraform": {example(), "terraform", map[string]string{"ARM_CLIENT_ID": "client", "ARM_CLIENT_SECRET": "se'cret$HOME",
			"ARM_SUBSCRIPTION_ID": "subscription", "ARM_TENANT_ID": "tenant", "HTTPS_PROXY": "http://127.0.0.1:8081",
			"AZURE_CLIENT_ID": ""}},
		"python": {example(), "python", map[string]string{"REQUESTS_CA_BUNDLE": "/tmp/it's here/ca.pem", "AZURE_CLIENT_ID": "client",
			"IDENTITY_ENDPOINT": ""}},
		"dotnet": {example(), "dotnet", map[string]string{"SSL_CERT_FILE": "/tmp/it's here/ca.pem", "AZURE_CLIENT_ID": "client"}},
		"java": {example(), "java", map[string]string{"AZURE_CLIENT_ID": "client", "SSL_CERT_FILE": "",
			"JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStoreType=PKCS12 " +
				"-Djavax.net.ssl.trustStorePassword=changeit -Djavax.net.ssl.trustStore=\"/tmp/it's here/ca-truststore.p12\" " +
				"-Djava.net.useSystemProxies=true -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=8081"}},
		"az": {example(), "az", map[string]string{"AZURE_CONFIG_DIR": "/tmp/it's here/ca-az", "CALLED": "login --service-principal " +
			"--username client --password se'cret$HOME --tenant tenant --output none account set --subscription subscription "}},
	} {
		var lines strings.Builder
		if err := test.info.WriteEnvironment(&lines, test.kind); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for variable, want := range test.want {
			script := "set -e\naz() { CALLED=\"$CALLED$* \"; }\n" + lines.String() + "printf %s \"$" + variable + "\"\n"
			shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
			shell.Env = []string{"HOME=/nowhere"}
			if got, err := shell.CombinedOutput(); err != nil || string(got) != want {
				t.Errorf("%s: %s is %q, %v; want %q", name, variable, got, err, want)
			}
		}
	}
}

// TestEnvironmentRefused checks which kinds of clients are refused, and what is allowed.
func TestEnvironmentRefused(t *testing.T) {
	plain := example()
	plain.Proxy = ""
	for kind, want := range map[string]string{
		"ruby":      `clients of the kind "ruby" are unknown: want az, dotnet, java, python, shell, terraform`,
		"az":        "the local Azure at https://127.0.0.1:8443 has no proxy; start it with --proxy-address 127.0.0.1:0",
		"terraform": "has no proxy",
	} {
		var lines strings.Builder
		if err := plain.WriteEnvironment(&lines, kind); err == nil || !strings.Contains(err.Error(), want) || lines.Len() > 0 {
			t.Errorf("%s: %v, want %s; wrote %q", kind, err, want, lines.String())
		}
	}
}
