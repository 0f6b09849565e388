package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kaz/internal/plan/check"
)

// TestCheckOfSilentCluster checks the command with a Kubernetes API that refuses everything and an azure.json with a mistake: the report is
// complete, and the exit status is that of a problem.
func TestCheckOfSilentCluster(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no entry", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	config := writeJSON(t, home, "config", map[string]any{"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": server.URL}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c"}}}})
	azure := writeJSON(t, home, "azure.json", map[string]any{"location": "eastus"})
	run := func(output string) string {
		command := checkCommand()
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs([]string{"--kubeconfig", config, "--cloud-config", azure, "-o", output})
		var out bytes.Buffer
		command.SetOut(&out)
		if err := command.ExecuteContext(t.Context()); !errors.Is(err, failed) {
			t.Errorf("%v, want exit status %d", err, failed)
		}
		return out.String()
	}
	var report check.Report
	if err := json.Unmarshal([]byte(run("json")), &report); err != nil {
		t.Fatal(err)
	}
	areas := map[string]bool{}
	for _, f := range report.Findings {
		areas[f.Area] = true
		if f.Area == "network" {
			continue // the API server answers, if only to refuse
		}
		if f.State == check.OK || f.Why == "" || f.Mend == "" {
			t.Errorf("%+v", f)
		}
	}
	if len(areas) != 17 {
		t.Errorf("%d areas: %v", len(areas), areas)
	}
	text := run("text")
	for _, want := range []string{"problem  subscriptionId: ", "unknown  Nodes: not read: ", "warnings: 0"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
