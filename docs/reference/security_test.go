// Package reference_test checks what pages of the reference name.
package reference_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// named is a test as a page names it: the folder of its package and its function.
var named = regexp.MustCompile("`([a-z0-9/]+)\\.((Test|Fuzz)[A-Za-z0-9]+)`")

// TestSecurityRules checks that each rule of the security page names at least one test, and that the tests are there.
func TestSecurityRules(t *testing.T) {
	page, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	rules, inside := 0, false
	for line := range strings.Lines(string(page)) {
		switch {
		case strings.HasPrefix(line, "| rule |"):
			inside = true
			continue
		case !strings.HasPrefix(line, "|"):
			inside = false
		case strings.HasPrefix(line, "|---"):
			continue
		}
		if !inside {
			continue
		}
		rules++
		tests := named.FindAllStringSubmatch(line, -1)
		if len(tests) == 0 {
			t.Errorf("a rule names no test: %s", line)
		}
		for _, test := range tests {
			if !exists(t, test[1], test[2]) {
				t.Errorf("package %s has no %s: %s", test[1], test[2], line)
			}
		}
	}
	if rules == 0 {
		t.Error("the page has no rules")
	}
}

// exists reports whether a test file of a folder has a function.
func exists(t *testing.T, folder, function string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+function+"(") {
			return true
		}
	}
	return false
}
