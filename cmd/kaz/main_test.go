package main

import (
	"bytes"
	"slices"
	"testing"

	"kaz/cmd/internal/release"
)

// TestVersion checks that --version prints the version, although the components define a version flag of another type.
func TestVersion(t *testing.T) {
	command := rootCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetArgs([]string{"--version"})
	if err := command.ExecuteContext(t.Context()); err != nil || out.String() != "kaz version "+release.Version()+"\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}

// TestLinksRunComponents checks that a link to kaz with the name of a component runs that component. Any other name runs kaz.
func TestLinksRunComponents(t *testing.T) {
	for _, test := range []struct{ line, want []string }{
		{[]string{"/usr/local/bin/cloud-node-manager", "--v=2"}, []string{"cloud-node-manager", "--v=2"}},
		{[]string{"azuredisk-csi-driver"}, []string{"azuredisk-csi-driver"}},
		{[]string{"azurefile-csi-driver"}, []string{"azurefile-csi-driver"}},
		{[]string{"/usr/local/bin/kaz", "local", "up"}, []string{"local", "up"}},
		{[]string{"kubectl-kaz", "explain"}, []string{"explain"}},
	} {
		if got := arguments(test.line); !slices.Equal(got, test.want) {
			t.Errorf("%q runs %q, want %q", test.line, got, test.want)
		}
	}
}

// TestNoSuchCommand checks that a missing or unknown command is an error. Exit status 0 of kaz explain means that nothing
// would change.
func TestNoSuchCommand(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"bogus"}, `unknown command "bogus" for "kaz"`},
		{[]string{"explain"}, "explain: no command given: want nodegroup, service, volume"},
		{[]string{"explain", "--all"}, "explain: no command given: want nodegroup, service, volume"},
		{[]string{"explain", "services", "default/web", "-o", "json"}, `unknown command "services" for "kaz explain": want nodegroup, service, volume`},
		{[]string{"local"}, "local: no command given: want azure, down, logs, ssh, status, up"},
		{[]string{"local", "logs"},
			"logs: no argument given: want one component or real node, such as cloud-controller-manager or nodes0-000000"},
		{[]string{"local", "logs", "a", "b"},
			"logs: a b: want one component or real node, such as cloud-controller-manager or nodes0-000000"},
		{[]string{"local", "ssh"}, "ssh: no argument given: want a real node, such as nodes0-000000"},
		{[]string{"local", "azure", "show"}, "show: no argument given: want one resource, by its name, TYPE/NAME or id"},
		{[]string{"local", "azure", "list", "a", "b"}, "list: a b: want one type, such as loadBalancers, or none for all"},
		{[]string{"local", "bogus"}, `unknown command "bogus" for "kaz local": want azure, down, logs, ssh, status, up`},
	} {
		command := rootCommand()
		var out bytes.Buffer
		command.SetOut(&out)
		command.SetErr(&out)
		command.SetArgs(test.args)
		if err := command.ExecuteContext(t.Context()); err == nil || err.Error() != test.want || out.Len() > 0 {
			t.Errorf("%q: %v, want %s; printed %q", test.args, err, test.want, out.String())
		}
	}
}
