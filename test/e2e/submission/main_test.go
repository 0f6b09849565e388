package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	conformance = "- codename: '[sig-a] one should\n    work [Conformance]'\n- codename: '[sig-b] two [Serial] [Conformance]'\n"
	passedBoth  = `<testsuites><testsuite>
<testcase name="[It] [sig-a] one should work [Conformance] [sig-a, Conformance]" status="passed"></testcase>
<testcase name="[It] [sig-b] two [Serial] [Conformance]" status="passed"></testcase>
<testcase name="[It] [sig-c] other" status="failed"></testcase>
</testsuite></testsuites>`
	filledIn = "vendor: A\nname: kaz\nversion: v0.1.0\nwebsite_url: https://a\ndocumentation_url: https://a/docs\ntype: installer\ndescription: d\n"
)

// TestSubmission makes a folder of complete results, and none of others.
func TestSubmission(t *testing.T) {
	for _, c := range []struct {
		name, junit, product, kubernetes, want string
	}{
		{"complete", passedBoth, filledIn, "1.36.3", ""},
		{"a test failed", strings.Replace(passedBoth, `status="passed"`, `status="failed"`, 1), filledIn, "1.36.3",
			"1 of 2 tests of conformance did not pass, or did not run:\n  [sig-a] one should work [Conformance]"},
		{"a test did not run", strings.Replace(passedBoth, "two [Serial]", "two more [Serial]", 1), filledIn, "1.36.3",
			"1 of 2 tests of conformance did not pass, or did not run:\n  [sig-b] two [Serial] [Conformance]"},
		{"no vendor", passedBoth, strings.Replace(filledIn, "vendor: A", "vendor:", 1), "1.36.3", "PRODUCT.yaml: fill in vendor"},
		{"no release", passedBoth, filledIn, "1.36", `-kubernetes "1.36": want a release such as 1.36.3`},
		{"no report", "no XML", filledIn, "1.36.3", "junit_01.xml: EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := submission{results: dir, texts: dir, tests: filepath.Join(dir, "conformance.yaml"), kubernetes: c.kubernetes, out: filepath.Join(dir, "out")}
			for name, text := range map[string]string{"README.md": "r", "PRODUCT.yaml": c.product, "conformance.yaml": conformance,
				"artifacts/e2e.log": "log", "artifacts/junit_01.xml": c.junit} {
				file := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			made, err := s.write()
			if c.want != "" {
				if err == nil || err.Error() != c.want {
					t.Fatalf("%v, want %s", err, c.want)
				}
				if _, err := os.Stat(s.out); err == nil {
					t.Error("a folder was made")
				}
				return
			}
			if err != nil || made != filepath.Join(s.out, "v1.36", "kaz") {
				t.Fatal(made, err)
			}
			for name, want := range map[string]string{"README.md": "r", "PRODUCT.yaml": c.product, "e2e.log": "log", "junit_01.xml": c.junit} {
				if text, err := os.ReadFile(filepath.Join(made, name)); err != nil || string(text) != want {
					t.Errorf("%s: %v %s", name, err, text)
				}
			}
		})
	}
}

// TestTexts checks that the description in the documentation lacks only what the vendor knows.
func TestTexts(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "conformance", "PRODUCT.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkProduct(text); err == nil || err.Error() != "PRODUCT.yaml: fill in vendor, version, website_url, documentation_url" {
		t.Error(err)
	}
}
