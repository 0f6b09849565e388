// Command models writes the table of what Azure's resource types look like, from the source of the official SDK modules that
// this Go module requires. The local Azure judges requests by this table, and kaz cluster learns from it which types have tags.
//
// The table has facts alone: names, kinds, what is required or read-only, and the values of enumerations.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const sdk = "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/"

// modules are the newest, below sdk.
var modules = []string{
	"authorization/armauthorization/v2", "compute/armcompute/v7", "containerregistry/armcontainerregistry", "dns/armdns",
	"keyvault/armkeyvault", "msi/armmsi", "network/armnetwork/v9", "privatedns/armprivatedns", "resources/armdeploymentstacks",
	"resources/armlocks", "resources/armresources", "storage/armstorage/v2", "trafficmanager/armtrafficmanager",
}

func main() {
	out := flag.String("out", "", "the `file` of the table")
	tagged := flag.String("tagged", "", "the `file` that lists the types with tags")
	flag.Parse()
	if err := run(*out, *tagged); err != nil {
		fmt.Fprintln(os.Stderr, "models:", err)
		os.Exit(1)
	}
}

func run(out, tagged string) error {
	if out == "" || tagged == "" {
		return errors.New("-out and -tagged are required")
	}
	t := newTable()
	for _, name := range modules {
		dir, version, err := locate(sdk + name)
		if err != nil {
			return err
		}
		s, err := readSource(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.add(name, version, s)
	}
	if err := t.addHistory(); err != nil {
		return err
	}
	t.dropRepeats()
	if err := os.WriteFile(out, t.text(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(tagged, t.tags(), 0o644)
}

// locate returns the folder and version of a module that go.mod requires.
func locate(module string) (dir, version string, err error) {
	text, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", module).Output()
	if err != nil {
		return "", "", fmt.Errorf("go list -m %s: %w", module, err)
	}
	dir, version, ok := strings.Cut(strings.TrimSpace(string(text)), " ")
	if !ok || dir == "" {
		return "", "", fmt.Errorf("module %s has no folder: run go mod download", module)
	}
	return dir, version, nil
}
