package main

import (
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/dns/explain"
	"kaz/internal/localazure/client"
	"kaz/internal/localazure/server"
)

// TestExplainNameRefuses checks that a wrong command line is reported in one line, before any request.
func TestExplainNameRefuses(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	none := filepath.Join(home, "none")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "0 names are given: want one, such as app.example.com"},
		{[]string{"a.b", "c.d"}, "2 names are given: want one, such as app.example.com"},
		{[]string{"app"}, `"app": want a DNS name, such as app.example.com`},
		{[]string{"app..example.com"}, `"app..example.com": want a DNS name, such as app.example.com`},
		{[]string{"app.example.com", "--server", "127.0.0.1"}, "--server 127.0.0.1: want HOST:PORT"},
		{[]string{"app.example.com", "-o", "xml"}, "--output xml: want text, wide, json, yaml, svg or picture"},
		{[]string{"app.example.com"}, "--cloud-config is missing: want the path of an azure.json"},
		{[]string{"app.example.com", "--cloud-config", none},
			"cloud configuration " + none + ": open cloud config: open " + none + ": no such file or directory"},
	} {
		out, err := runRoot(t, append([]string{"explain", "name"}, test.args...)...)
		if err == nil || err.Error() != test.want || out != "" {
			t.Errorf("%q: %v, want %s; printed %q", test.args, err, test.want, out)
		}
	}
}

// TestExplainName explains names of a local Azure, whose name server answers.
func TestExplainName(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	s, err := server.Start(t.Context(), server.Options{DNSAddress: "127.0.0.1:0", AnnounceDir: home, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	info := s.Info()
	group := azure.GroupID(info.Subscription, "dns")
	zone := group.Resource(network.DNSZones, "example.com")
	local, err := client.New(info)
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	for _, put := range []struct {
		id   azure.ID
		body string
	}{
		{group, `{"location":"westeurope"}`}, {zone, `{"location":"global"}`},
		{zone.Child("A", "app"), `{"properties":{"TTL":60,"ARecords":[{"ipv4Address":"1.1.1.1"}]}}`},
	} {
		if _, err := local.Put(t.Context(), string(put.id), []byte(put.body)); err != nil {
			t.Fatal(err)
		}
	}
	config := writeJSON(t, home, "azure.json", map[string]any{
		"resourceManagerEndpoint": info.ARM, "cloud": "AzureStackCloud", "tenantId": info.Tenant, "subscriptionId": info.Subscription,
		"resourceGroup": "kaz", "location": "westeurope", "useManagedIdentityExtension": true,
	})
	out, err := runRoot(t, "explain", "name", "app.example.com", "--cloud-config", config, "--zone-resource-group", "dns")
	if err != nil || !regexp.MustCompile(`answer +A +1.1.1.1, 60 s`).MatchString(out) {
		t.Errorf("%v: %s", err, out)
	}
	out, err = runRoot(t, "explain", "name", "app.example.com", "--cloud-config", config, "--zone-resource-group", string(group), "-o", "json")
	var n explain.Name
	if wrong := json.Unmarshal([]byte(out), &n); err != nil || wrong != nil || n.Zones[0].Answers[0].TTL != 60 {
		t.Errorf("%v, %v: %s", err, wrong, out)
	}
	out, err = runRoot(t, "explain", "name", "other.example.com", "--cloud-config", config, "--zone-resource-group", "dns")
	if !errors.Is(err, failed) || !strings.Contains(out, "NXDOMAIN") || !strings.Contains(out, "- there is no record set of the name") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = runRoot(t, "dns", "withdraw", "west", "--cloud-config", config, "--zone-resource-group", "dns")
	if err != nil || out != "cluster west left 0 names\n" {
		t.Errorf("%v: %s", err, out)
	}
	_, err = runRoot(t, "explain", "name", "app.example.org", "--cloud-config", config, "--zone-resource-group", "dns")
	if !errors.Is(err, explain.ErrNoZone) || !strings.Contains(err.Error(), "--zone-resource-group names others") {
		t.Error(err)
	}
}

// TestWithdrawRefuses checks that a wrong command line is reported, before any request.
func TestWithdrawRefuses(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KUBECONFIG", "")
	for args, want := range map[string]string{
		"dns":                    "dns: no command given: want withdraw",
		"dns withdraw":           "0 clusters are given: want one, such as west",
		"dns withdraw a b":       "2 clusters are given: want one, such as west",
		"dns withdraw West":      `cluster "West": must have 1 to 32 lower-case letters, digits and hyphens, and neither begin nor end with a hyphen`,
		"dns withdraw west":      "--cloud-config is missing: want the path of an azure.json",
		"dns withdraw west -o x": "--cloud-config is missing: want the path of an azure.json",
	} {
		out, err := runRoot(t, strings.Fields(args)...)
		if err == nil || err.Error() != want || out != "" {
			t.Errorf("%s: %v, want %s; printed %q", args, err, want, out)
		}
	}
}
