package client

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
)

// variable is an environment variable of clients.
type variable struct {
	name  string
	value func(Info) string // "" leaves the variable out
}

// dialect says what one kind of client reads.
type dialect struct {
	variables []variable
	// needsProxy says that these clients know Azure's public hosts only.
	needsProxy bool
	// commands are commands of the shell after the variables, with the words that they take from the description.
	commands func(Info) [][]string
}

// publicTenant is the tenant of clients of the SDKs. Behind the proxy it is the tenant itself. Without a proxy the local Azure is the
// authority. Its tenant is then adfs, because the SDKs ask a public host whether they may trust the authority of other tenants.
func publicTenant(i Info) string {
	if i.Proxy == "" {
		return "adfs"
	}
	return i.Tenant
}

// authority is the login of clients of the SDKs without a proxy.
func authority(i Info) string {
	if i.Proxy == "" {
		return i.ARM
	}
	return ""
}

// noProxy are the hosts that clients reach without the proxy, "" without a proxy.
func noProxy(i Info) string {
	if i.Proxy == "" {
		return ""
	}
	return "127.0.0.1,localhost,::1"
}

// TrustStore returns the file with the certificate authority in the form that Java reads. It is beside the certificate authority.
func (i Info) TrustStore() string {
	return strings.TrimSuffix(i.CAFile, filepath.Ext(i.CAFile)) + "-truststore.p12"
}

// TrustStorePassword is the password of [Info.TrustStore], which has nothing secret.
const TrustStorePassword = "changeit"

// javaOptions are the options of a Java machine. The SDK for Java reads HTTPS_PROXY only with java.net.useSystemProxies.
func javaOptions(i Info) string {
	options := "-Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=" + TrustStorePassword +
		` -Djavax.net.ssl.trustStore="` + i.TrustStore() + `"`
	if host, port, err := net.SplitHostPort(HostOf(i.Proxy)); err == nil {
		options += " -Djava.net.useSystemProxies=true -Dhttps.proxyHost=" + host + " -Dhttps.proxyPort=" + port
	}
	return options
}

// azDirectory is the directory for the login of az. It is not the user's own, so that the login to the real Azure stays.
func azDirectory(i Info) string { return strings.TrimSuffix(i.CAFile, filepath.Ext(i.CAFile)) + "-az" }

func login(prefix string) []variable {
	return []variable{
		{prefix + "_CLIENT_ID", func(i Info) string { return i.ClientID }},
		{prefix + "_CLIENT_SECRET", func(i Info) string { return i.ClientSecret }},
		{prefix + "_SUBSCRIPTION_ID", func(i Info) string { return i.Subscription }},
		{prefix + "_TENANT_ID", publicTenant},
	}
}

// reach are the variables by which all clients reach the local Azure, with the names of variables for the certificate authority.
func reach(certificates ...string) []variable {
	all := []variable{
		{"HTTPS_PROXY", func(i Info) string { return i.Proxy }},
		{"NO_PROXY", noProxy},
		{"KAZ_LOCAL_AZURE", func(i Info) string { return i.ARM }},
	}
	for _, name := range certificates {
		all = append(all, variable{name, func(i Info) string { return i.CAFile }})
	}
	return all
}

var authorityHost = variable{"AZURE_AUTHORITY_HOST", authority}

func constant(text string) func(Info) string { return func(Info) string { return text } }

// dialects are the kinds of clients.
var dialects = map[string]dialect{
	"shell": {variables: slices.Concat(login("AZURE"), reach("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), []variable{
		authorityHost,
		{"IDENTITY_ENDPOINT", func(i Info) string { return i.IdentityEndpoint }},
		{"IDENTITY_HEADER", func(i Info) string { return i.IdentityHeader }},
	})},
	"az": {
		needsProxy: true,
		variables: slices.Concat(reach("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"), []variable{
			{"AZURE_CONFIG_DIR", azDirectory}, {"AZURE_CORE_COLLECT_TELEMETRY", constant("0")},
		}),
		commands: func(i Info) [][]string {
			return [][]string{
				{"az", "login", "--service-principal", "--username", i.ClientID, "--password", i.ClientSecret, "--tenant", i.Tenant,
					"--output", "none"},
				{"az", "account", "set", "--subscription", i.Subscription},
			}
		},
	},
	"terraform": {
		needsProxy: true,
		variables: slices.Concat(login("ARM"), reach("SSL_CERT_FILE"), []variable{
			{"ARM_RESOURCE_PROVIDER_REGISTRATIONS", constant("none")}, {"ARM_USE_CLI", constant("false")},
		}),
	},
	"python": {variables: slices.Concat(login("AZURE"), reach("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), []variable{authorityHost})},
	"dotnet": {variables: slices.Concat(login("AZURE"), reach("SSL_CERT_FILE"), []variable{authorityHost})},
	"java":   {variables: slices.Concat(login("AZURE"), reach(), []variable{authorityHost, {"JAVA_TOOL_OPTIONS", javaOptions}})},
}

// Dialects returns the kinds of clients for which [Info.WriteEnvironment] knows the variables.
func Dialects() []string { return slices.Sorted(maps.Keys(dialects)) }

// WriteEnvironment writes the lines of a shell by which clients of a kind reach and log in to the local Azure.
func (i Info) WriteEnvironment(w io.Writer, kind string) error {
	d, known := dialects[kind]
	if !known {
		return fmt.Errorf("clients of the kind %q are unknown: want %s", kind, strings.Join(Dialects(), ", "))
	}
	if d.needsProxy && i.Proxy == "" {
		return fmt.Errorf("clients of the kind %s know Azure's public hosts only, and the local Azure at %s has no proxy; "+
			"start it with --proxy-address 127.0.0.1:0", kind, i.ARM)
	}
	var b strings.Builder
	for _, v := range slices.SortedFunc(slices.Values(d.variables), func(a, b variable) int { return cmp.Compare(a.name, b.name) }) {
		if value := v.value(i); value != "" {
			fmt.Fprintf(&b, "export %s=%s\n", v.name, quote(value))
		}
	}
	if d.commands != nil {
		for _, words := range d.commands(i) {
			for n, word := range words {
				words[n] = quote(word)
			}
			b.WriteString(strings.Join(words, " ") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// quote returns a text as one word of a shell.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=@+", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
