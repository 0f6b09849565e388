package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kaz/cmd/kaz/azurecommand"
	"kaz/internal/localazure/client"
)

// launchAzure runs a local Azure as a user does, in a directory of its own, until stop is called. It returns what it prints.
func launchAzure(t *testing.T) (printed *bufio.Reader, stop func() error) {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	state := filepath.Join(t.TempDir(), "state.json")
	go func() {
		command := azurecommand.New()
		command.SetArgs([]string{"--state", state})
		command.SetOut(in)
		err := command.ExecuteContext(ctx)
		_ = in.Close() // never fails
		ended <- err
	}()
	return bufio.NewReader(out), func() error {
		cancel()
		return <-ended
	}
}

// TestAzure runs a local Azure, and reads what is in it.
func TestAzure(t *testing.T) {
	lines, stop := launchAzure(t)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("%q: %v; %v", line, err, stop())
	}
	var info client.Info
	if err := json.Unmarshal(line, &info); err != nil {
		t.Fatal(err)
	}
	put(t, info, "/resourceGroups/rg", `{"location":"westeurope"}`)
	put(t, info, "/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/net",
		`{"location":"westeurope","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},
			"subnets":[{"name":"nodes","properties":{"addressPrefix":"10.0.0.0/24"}}]}}`)

	if got := run(t, "list"); !strings.Contains(got, "virtualNetworks | net") || !strings.Contains(got, "resourceGroups | rg") {
		t.Errorf("list:\n%s", got)
	}
	if got := run(t, "list", "subnets"); !strings.Contains(got, "net/nodes | rg") {
		t.Errorf("list subnets:\n%s", got)
	}
	if got := run(t, "list", "virtualNetworks", "-o", "json"); !strings.Contains(got, `"addressPrefix": "10.0.0.0/24"`) {
		t.Errorf("list -o json:\n%s", got)
	}
	for _, id := range []string{"net", "virtualnetworks/net", "/subscriptions/" + info.Subscription +
		"/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/net"} {
		if got := run(t, "show", id, "--endpoint", info.ARMHTTP); !strings.Contains(got, "addressPrefix: 10.0.0.0/24") {
			t.Errorf("show %s:\n%s", id, got)
		}
	}
	subnet := "/subscriptions/" + info.Subscription + "/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/net/subnets/apps"
	if got, err := give(t, subnet, `{"properties":{"addressPrefix":"10.0.1.0/24"}}`); err != nil || !strings.Contains(got, subnet) {
		t.Errorf("put: %v, %s", err, got)
	}
	if got := run(t, "show", subnet); !strings.Contains(got, "10.0.1.0/24") {
		t.Errorf("what was put is not there:\n%s", got)
	}
	for what, test := range map[string][3]string{
		"no id":       {"net", "{}", "net"},
		"no document": {subnet, "", "Cannot parse the request"},
		"refused":     {subnet, `{"properties":{"addressPrefix":"10.0.0.0/24"}}`, "overlaps"},
		"missing group": {strings.Replace(subnet, "/rg/", "/nope/", 1), `{"properties":{"addressPrefix":"10.0.2.0/24"}}`,
			"'nope' could not be found"},
	} {
		if got, err := give(t, test[0], test[1]); err == nil || !strings.Contains(err.Error(), test[2]) || got != "" {
			t.Errorf("put, %s: %v, want %q; printed %q", what, err, test[2], got)
		}
	}
	group := "/subscriptions/" + info.Subscription + "/resourceGroups/rg/providers/"
	for id, document := range map[string]string{ // with 202 and no document, and with 202 and one
		group + "Microsoft.Storage/storageAccounts/kazstore": `{"location":"westeurope","kind":"StorageV2","sku":{"name":"Standard_LRS"}}`,
		group + "Microsoft.Compute/disks/data": `{"location":"westeurope","sku":{"name":"Premium_LRS"},
			"properties":{"diskSizeGB":4,"creationData":{"createOption":"Empty"}}}`,
	} {
		if got, err := give(t, id, document); err != nil || got != "created or replaced "+id+"\n" {
			t.Errorf("put with status 202: %v, %s", err, got)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("more on stdout: %q, %v", rest, err)
	}
	command := azurecommand.New()
	command.SetArgs([]string{"list"})
	command.SilenceErrors, command.SilenceUsage = true, true
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "no local Azure is running") {
		t.Errorf("list when nothing runs: %v", err)
	}
}

// give puts a document.
func give(t *testing.T, id, document string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := azurecommand.New()
	command.SetArgs([]string{"put", id})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetIn(strings.NewReader(document))
	command.SetOut(&out)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	command := azurecommand.New()
	command.SetArgs(args)
	command.SetOut(&out)
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Errorf("%v: %v", args, err)
	}
	// Columns are as wide as their content.
	return strings.ReplaceAll(regexp.MustCompile(" {2,}").ReplaceAllString(out.String(), " | "), "\n | ", "\n")
}

func put(t *testing.T, info client.Info, path, body string) {
	t.Helper()
	url := info.ARMHTTP + "/subscriptions/" + info.Subscription + path + "?api-version=2025-05-01"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+info.Token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusCreated {
		t.Fatalf("PUT %s: %d %s", path, resp.StatusCode, text)
	}
}

// TestAzureArguments checks that wrong arguments and ports of other programs are named before anything is built, with what is allowed.
func TestAzureArguments(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", "") // nothing can be built
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	address := taken.Addr().String()
	machines := "--machines-dir=" + t.TempDir()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{machines, "--kubernetes=9.9.9"}, "--kubernetes 9.9.9: want some of 1."},
		{[]string{"--kubernetes=9.9.9"}, "--kubernetes 9.9.9: only machines that boot have an image; add --machines-dir"},
		{[]string{"--ignition"}, "--ignition: only machines that boot have an image; add --machines-dir"},
		{[]string{"--bare"}, "--bare: only machines that boot have an image; add --machines-dir"},
		{[]string{machines, "--bare", "--ignition"}, "--ignition: the bare image boots with cloud-init; want --bare or --ignition"},
		{[]string{machines, "--bare", "--kubernetes=1.36.3"}, "--kubernetes 1.36.3: the bare image has no Kubernetes; want --bare or"},
		{[]string{machines, "--quota=foo=1"}, "--quota foo=1: want the name cores, lowPriorityCores or a family of sizes such as "},
		{[]string{"--quota=standardDSv5Famly=1"}, "a family of sizes such as standardDSv5Family, as az vm"},
		{[]string{"--quota=cores=many"}, "--quota cores=many: want NAME=N"},
		{[]string{machines, "--address=" + address}, "--address " + address + ": the port is taken by another program"},
		{[]string{machines, "--state=" + filepath.Join(t.TempDir(), "no", "such", "state.json")}, "does not exist"},
	} {
		command := azurecommand.New()
		command.SetArgs(test.args)
		command.SilenceErrors, command.SilenceUsage = true, true
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %s", test.args, err, test.want)
		}
	}
}
