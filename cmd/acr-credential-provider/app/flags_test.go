package app

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsOfToday checks the flags in existing kubelet configurations, with their defaults.
func TestFlagsOfToday(t *testing.T) {
	flags := Command(Process{}).Flags()
	for name, initial := range map[string]string{
		"registry-mirror": "", "ib-sni-name": "", "ib-apiserver-ip": "", "ib-default-client-id": "", "ib-default-tenant-id": "",
		"v": "0",
	} {
		f := flags.Lookup(name)
		switch {
		case f == nil:
			t.Errorf("--%s is not known", name)
		case f.DefValue != initial:
			t.Errorf("--%s is %q without being said, want %q", name, f.DefValue, initial)
		}
	}
	if f := flags.ShorthandLookup("r"); f == nil || f.Name != "registry-mirror" {
		t.Error("-r is not --registry-mirror")
	}
}

// TestReference checks that docs/reference/acr-credential-provider.md lists exactly the program's
// flags with their defaults.
func TestReference(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/acr-credential-provider.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Flags")
	table, _, _ = strings.Cut(table, "\n## ")
	flags := 0
	Command(Process{}).Flags().VisitAll(func(f *pflag.Flag) {
		flags++
		row := fmt.Sprintf("`--%s`", f.Name)
		_, rest, ok := strings.Cut(table, row)
		if !ok {
			t.Errorf("the page does not have --%s", f.Name)
			return
		}
		line, _, _ := strings.Cut(rest, "\n")
		if f.DefValue != "" && !strings.Contains(line, f.DefValue) {
			t.Errorf("the page does not say that --%s is %s without being said: %s", f.Name, f.DefValue, line)
		}
	})
	if rows := strings.Count(table, "\n| `-"); rows != flags+1 { // --version and --help are cobra's own
		t.Errorf("the page has %d rows for %d flags", rows, flags)
	}
}

func TestHelpHasAnExample(t *testing.T) {
	var text bytes.Buffer
	if code := Main([]string{"--help"}, Process{Out: &text, Err: &text}); code != 0 ||
		!strings.Contains(text.String(), "Examples:\n  echo") {
		t.Errorf("code %d, help:\n%s", code, &text)
	}
}
