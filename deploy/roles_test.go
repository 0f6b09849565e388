package deploy_test

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kaz/deploy"
)

var update = flag.Bool("update", false, "write the roles and their reference anew")

// TestRoles compares deploy/roles with the rights table.
func TestRoles(t *testing.T) {
	roles := deploy.Roles()
	var want []string
	for _, name := range slices.Sorted(maps.Keys(roles)) {
		text, err := roles[name].Text()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("roles", name+".json")
		want = append(want, file)
		same(t, file, string(text))
	}
	var got []string
	err := filepath.WalkDir("roles", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(want)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}

const marker = "<!-- table: written by go test ./deploy -run TestReference -update -->\n"

func TestReference(t *testing.T) {
	file := filepath.Join("..", "docs", "reference", "roles.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, _, found := strings.Cut(string(text), marker)
	if !found {
		t.Fatalf("%s has no line %q", file, marker)
	}
	same(t, file, before+marker+deploy.Reference())
}

// same compares a file with what it must be, or writes it.
func same(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != want {
		t.Errorf("deploy/%s is stale (%v): make generate", file, err)
	}
}

// TestNoWildcards checks that roles name each action.
func TestNoWildcards(t *testing.T) {
	for name, r := range deploy.Roles() {
		if len(r.Actions) == 0 {
			t.Errorf("%s has no actions", name)
		}
		for _, a := range r.Actions {
			if strings.Contains(a, "*") {
				t.Errorf("%s: %s", name, a)
			}
		}
	}
}
