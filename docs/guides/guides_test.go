// Package guides_test checks what guides name: metrics, reasons and pages are there.
package guides_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages are those that are checked.
func pages() []string {
	return []string{"troubleshooting.md", "upgrade.md", "disks.md", "files.md", "cluster.md", "dns.md", "check.md", "verify.md",
		"install.md",
		"../resources/node/README.md", "../resources/node/labels.md",
		"../reference/health-probe-proxy.md"}
}

// code is all Go code that is shipped, as one text.
func code(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, top := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join("../..", top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

func TestWhatGuidesName(t *testing.T) {
	program := code(t)
	metric := regexp.MustCompile(`\bkaz_[a-z_]+[a-z]`)
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	quoted := regexp.MustCompile("`([A-Z][A-Za-z]+(?:Failed|Contradiction|Unclear|LoadBalancer|Rights|Rejected|Initialization))\\b")
	frameworks := map[string]bool{"DeletingNodeFailed": true, "FailedToCreateRoute": true, "ProvisioningFailed": true}
	for _, page := range pages() {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := string(content)
		for _, name := range metric.FindAllString(text, -1) {
			if !strings.Contains(program, `"`+name+`"`) {
				t.Errorf("%s: there is no metric %s", page, name)
			}
		}
		for _, m := range quoted.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(program, `"`+m[1]+`"`) && !frameworks[m[1]] {
				t.Errorf("%s: nothing has the reason %s", page, m[1])
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}
