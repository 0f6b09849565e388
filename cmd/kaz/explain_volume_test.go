package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplainVolumeRefuses checks that a wrong command line or a missing cluster is reported in one line, before any request.
func TestExplainVolumeRefuses(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	none := filepath.Join(home, "none")
	kubeconfig := writeJSON(t, home, "kubeconfig", map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": "http://127.0.0.1:1"}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c"}}},
	})
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "0 claims are given: want one, NAMESPACE/NAME, such as default/data"},
		{[]string{"a/b", "c/d"}, "2 claims are given: want one, NAMESPACE/NAME, such as default/data"},
		{[]string{"data"}, `"data": want NAMESPACE/NAME, such as default/data`},
		{[]string{"a/b/c"}, `"a/b/c": want NAMESPACE/NAME, such as default/data`},
		{[]string{"a/b", "-o", "xml"}, "--output xml: want text, wide, json, yaml, svg or picture"},
		{[]string{"a/b", "--timeout", "0"}, "--timeout 0s: want more than 0"},
		{[]string{"a/b", "--dir", none, "--kubeconfig", none}, "--dir and --kubeconfig: want one of them"},
		{[]string{"a/b", "--kubeconfig", none}, "kubeconfig: stat " + none + ": no such file or directory"},
		{[]string{"a/b", "--kubeconfig", kubeconfig, "--cloud-config", none},
			"cloud configuration " + none + ": open cloud config: open " + none + ": no such file or directory"},
	} {
		command := explainVolumeCommand()
		command.SilenceErrors, command.SilenceUsage = true, true
		command.SetArgs(test.args)
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetErr(&out)
		err := command.ExecuteContext(t.Context())
		if err == nil || err.Error() != test.want || strings.Contains(err.Error(), "\n") || out.Len() > 0 {
			t.Errorf("%q: %v, want %s; printed %q", test.args, err, test.want, out.String())
		}
	}
}
