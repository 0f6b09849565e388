package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// What is wrong with the command line, or with where a cluster should be, is said in one
// sentence before anything is asked.
func TestExplainRefuses(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	none := filepath.Join(home, "none")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "no Service is named: want NAMESPACE/NAME, such as default/web, or --all"},
		{[]string{"web"}, `"web": want NAMESPACE/NAME, such as default/web`},
		{[]string{"/web"}, `"/web": want NAMESPACE/NAME, such as default/web`},
		{[]string{"default/"}, `"default/": want NAMESPACE/NAME, such as default/web`},
		{[]string{"a/b/c"}, `"a/b/c": want NAMESPACE/NAME, such as default/web`},
		{[]string{"a/b", "c/d"}, "a/b c/d: want one Service, or --all"},
		{[]string{"a/b", "--all"}, "--all and a/b: want one of them"},
		{[]string{"a/b", "-o", "xml"}, "--output xml: want text, json or yaml"},
		{[]string{"a/b", "--kubeconfig", none}, "kubeconfig: stat " + none + ": no such file or directory"},
	} {
		command := explainServiceCommand()
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
