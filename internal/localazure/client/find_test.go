package client

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"kaz/internal/host/atomicfile"
)

// announced announces a local Azure in a directory, whose port answers until the end of the test. It returns the address.
func announced(t *testing.T, dir, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	info := Info{ARM: "https://" + l.Addr().String(), Token: "token"}
	if err := atomicfile.WriteJSON(filepath.Join(dir, name+".json"), announcement{Info: info, PID: 1}); err != nil {
		t.Fatal(err)
	}
	return info.ARM
}

// TestFindOneOfSeveral checks which of several local Azures a command uses.
func TestFindOneOfSeveral(t *testing.T) {
	up, other, stopped := t.TempDir(), t.TempDir(), t.TempDir()
	mine, theirs := announced(t, up, "azure-state-running"), announced(t, other, "1")
	have := func(all ...string) func(context.Context, Info) (bool, error) {
		return func(_ context.Context, info Info) (bool, error) {
			return strings.Contains(strings.Join(all, " "), info.ARM), nil
		}
	}
	silent := func(context.Context, Info) (bool, error) { return false, errors.New("it does not answer") }
	for name, test := range map[string]struct {
		env, endpoint string
		has           func(context.Context, Info) (bool, error)
		want          string // "" for an error
		says          string
	}{
		"no choice":                      {"", "", nil, "", "2 local Azures are running; choose one with --endpoint "},
		"endpoint":                       {"", theirs, nil, theirs, ""},
		"environment":                    {up, "", nil, mine, ""},
		"endpoint before environment":    {up, theirs, nil, theirs, ""},
		"environment that does not run":  {stopped, "", nil, "", "2 local Azures are running"},
		"resource":                       {"", "", have(theirs), theirs, ""},
		"resource before environment":    {up, "", have(theirs), theirs, ""},
		"resource in both":               {"", "", have(mine, theirs), "", "2 local Azures are running"},
		"resource in both, environment":  {up, "", have(mine, theirs), mine, ""},
		"resource in none, environment":  {up, "", have(), mine, ""},
		"one of them cannot be asked":    {up, "", silent, "", "it does not answer"},
		"the endpoint needs no question": {up, theirs, silent, theirs, ""},
	} {
		t.Setenv(DirVariable, test.env)
		info, err := FindWith(t.Context(), test.has, test.endpoint, up, other)
		if info.ARM != test.want || test.want == "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %q, %v", name, info.ARM, err)
		}
	}
	t.Setenv(DirVariable, stopped)
	if info, err := Find(t.Context(), "", stopped, other); err != nil || info.ARM != theirs {
		t.Errorf("the only one that runs: %q, %v", info.ARM, err)
	}
}

// TestUnknownType checks that an unknown type is answered with types that are spelled alike, in one short line.
func TestUnknownType(t *testing.T) {
	types, err := knownTypes()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"loadbalancer":                  `type "loadbalancer" is unknown; did you mean loadBalancers?`,
		"lodabalancers":                 "; did you mean loadBalancers?",
		"virtualMachine":                "; did you mean virtualMachines?",
		"balancers":                     "; did you mean loadBalancers",
		"Microsoft.Network/loadBalance": "; did you mean Microsoft.Network/loadBalancers?",
		"virtualNetworks/subnet":        "; did you mean virtualNetworks/subnets?",
		"zz":                            `type "zz" is unknown: want one such as loadBalancers, or Microsoft.Network/loadBalancers`,
	} {
		const most = 250
		if _, err := findType(types, name); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > most {
			t.Errorf("%s: %v", name, err)
		}
	}
}
