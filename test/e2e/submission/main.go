// Command submission makes the folder that CNCF's conformance program takes, from the results of make e2e. It refuses results that do not
// have all tests of conformance as passed, and a description of the product with empty fields.
package main

import (
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

func main() {
	var s submission
	flag.StringVar(&s.results, "results", filepath.Join("bin", "e2e", "results"),
		"folder of make e2e, with artifacts/junit_01.xml and artifacts/e2e.log")
	flag.StringVar(&s.texts, "texts", filepath.Join("docs", "reference", "conformance"), "folder with README.md and PRODUCT.yaml")
	flag.StringVar(&s.tests, "tests", "", "test/conformance/testdata/conformance.yaml of the release of Kubernetes")
	flag.StringVar(&s.kubernetes, "kubernetes", "", "release of Kubernetes, such as 1.36.3")
	flag.StringVar(&s.out, "out", filepath.Join("bin", "conformance"), "folder that gets the folder of the release, such as v1.36/kaz")
	flag.Parse()
	dir, err := s.write()
	if err != nil {
		fmt.Fprintln(os.Stderr, "submission:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}

// submission is where the parts of a submission are.
type submission struct{ results, texts, tests, kubernetes, out string }

var releaseForm = regexp.MustCompile(`^(\d+\.\d+)\.\d+$`)

// write checks the parts and copies them. It returns their folder.
func (s submission) write() (string, error) {
	release := releaseForm.FindStringSubmatch(s.kubernetes)
	if release == nil {
		return "", fmt.Errorf("-kubernetes %q: want a release such as 1.36.3", s.kubernetes)
	}
	parts := map[string]string{
		"README.md": filepath.Join(s.texts, "README.md"), "PRODUCT.yaml": filepath.Join(s.texts, "PRODUCT.yaml"),
		"e2e.log": filepath.Join(s.results, "artifacts", "e2e.log"), "junit_01.xml": filepath.Join(s.results, "artifacts", "junit_01.xml"),
	}
	texts := map[string][]byte{}
	var problems []error
	read := func(file string) []byte {
		text, err := os.ReadFile(file)
		problems = append(problems, err)
		return text
	}
	for name, file := range parts {
		texts[name] = read(file)
	}
	tests := read(s.tests)
	if err := errors.Join(problems...); err != nil {
		return "", err
	}
	if err := errors.Join(checkProduct(texts["PRODUCT.yaml"]), checkResults(tests, texts["junit_01.xml"])); err != nil {
		return "", err
	}
	dir := filepath.Join(s.out, "v"+release[1], "kaz")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// checkProduct names the fields that are empty. repo_url and product_logo_url may be.
func checkProduct(text []byte) error {
	var product map[string]string
	if err := yaml.Unmarshal(text, &product); err != nil {
		return fmt.Errorf("PRODUCT.yaml: %w", err)
	}
	var empty []string
	for _, field := range []string{"vendor", "name", "version", "website_url", "documentation_url", "type", "description"} {
		if product[field] == "" {
			empty = append(empty, field)
		}
	}
	if len(empty) > 0 {
		return fmt.Errorf("PRODUCT.yaml: fill in %s", strings.Join(empty, ", "))
	}
	return nil
}

// checkResults names the tests of conformance that did not pass, or did not run.
func checkResults(tests, junit []byte) error {
	var wanted []struct{ Codename string }
	if err := yaml.Unmarshal(tests, &wanted); err != nil {
		return fmt.Errorf("the tests of conformance: %w", err)
	}
	if len(wanted) == 0 {
		return errors.New("the file with the tests of conformance has none")
	}
	var report struct {
		Suites []struct {
			Cases []struct {
				Name   string `xml:"name,attr"`
				Status string `xml:"status,attr"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(junit, &report); err != nil {
		return fmt.Errorf("junit_01.xml: %w", err)
	}
	var passed []string
	for _, suite := range report.Suites {
		for _, c := range suite.Cases {
			if c.Status == "passed" {
				passed = append(passed, strings.TrimPrefix(c.Name, "[It] "))
			}
		}
	}
	var absent []string
	for _, test := range wanted {
		if !hasPrefix(passed, test.Codename) {
			absent = append(absent, test.Codename)
		}
	}
	if len(absent) > 0 {
		return fmt.Errorf("%d of %d tests of conformance did not pass, or did not run:\n  %s", len(absent), len(wanted),
			strings.Join(absent, "\n  "))
	}
	return nil
}

// hasPrefix reports whether a name is that of a test. ginkgo adds the labels of a test to its name.
func hasPrefix(names []string, test string) bool {
	for _, name := range names {
		if name == test || strings.HasPrefix(name, test+" ") {
			return true
		}
	}
	return false
}
