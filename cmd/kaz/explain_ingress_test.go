package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestExplainIngressRefuses checks that a wrong command line or a missing cluster is reported in one line, before any request.
func TestExplainIngressRefuses(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	none := filepath.Join(home, "none")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "0 Ingresses are given: want one, NAMESPACE/NAME, such as default/shop"},
		{[]string{"shop"}, `"shop": want NAMESPACE/NAME, such as default/shop`},
		{[]string{"a/b", "--gateway", "g", "--gateway-id",
			"/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/applicationGateways/a"},
			"--gateway-id /subscriptions/s/resourceGroups/g/providers/Microsoft.Network/applicationGateways/a and --gateway g " +
				"exclude each other: want one"},
		{[]string{"a/b", "--gateway-id", "g"},
			`--gateway-id "g": must be /subscriptions/.../providers/Microsoft.Network/applicationGateways/NAME`},
		{[]string{"a/b", "--cluster-id", "a-b"}, `--cluster-id "a-b": must be 1 to 8 letters and digits, or empty`},
		{[]string{"a/b", "-o", "xml"}, "--output xml: want text, wide, json, yaml, svg or picture"},
		{[]string{"a/b", "--kubeconfig", none}, "kubeconfig: stat " + none + ": no such file or directory"},
	} {
		command := explainIngressCommand()
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

// TestExplainGatewayAPIRefuses checks the command lines of the objects of the Gateway API.
func TestExplainGatewayAPIRefuses(t *testing.T) {
	for _, test := range []struct {
		command *cobra.Command
		args    []string
		want    string
	}{
		{explainGatewayCommand(), nil, "0 Gateways are given: want one, NAMESPACE/NAME, such as default/gate"},
		{explainGatewayCommand(), []string{"gate"}, `"gate": want NAMESPACE/NAME, such as default/gate`},
		{explainRouteCommand(), []string{"a/b", "c/d"}, "2 HTTPRoutes are given: want one, NAMESPACE/NAME, such as default/shop"},
		{explainRouteCommand(), []string{"a/b", "--at", "gate"},
			`--at "gate": must be /subscriptions/.../providers/Microsoft.Network/applicationGateways/NAME`},
	} {
		test.command.SilenceErrors, test.command.SilenceUsage = true, true
		test.command.SetArgs(test.args)
		if err := test.command.ExecuteContext(t.Context()); err == nil || err.Error() != test.want {
			t.Errorf("%s %q: %v, want %s", test.command.Name(), test.args, err, test.want)
		}
	}
}
