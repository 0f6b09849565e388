package reference_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kaz/internal/localcluster/controlplane"
)

// TestSupportedVersions checks that the page has the releases of Kubernetes that can be run, that charts take their minors and no other one,
// and that the version of CSI is that of the drivers.
func TestSupportedVersions(t *testing.T) {
	page, err := os.ReadFile("support.md")
	if err != nil {
		t.Fatal(err)
	}
	var told, minors []string
	for _, row := range regexp.MustCompile(`(?m)^\| (1\.\d+) \| ([0-9.]+) \|`).FindAllStringSubmatch(string(page), -1) {
		if told = append(told, row[2]); !strings.HasPrefix(row[2], row[1]+".") {
			t.Errorf("release %s of minor %s", row[2], row[1])
		}
		minors = append(minors, row[1])
	}
	run, err := controlplane.Releases()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(run)
	if !slices.Equal(told, run) {
		t.Errorf("the page has the releases %q, %q can be run", told, run)
	}
	first, last := minors[0], 0
	if _, err := fmt.Sscanf(minors[len(minors)-1], "1.%d", &last); err != nil {
		t.Fatal(err)
	}
	charts, err := filepath.Glob("../../deploy/charts/*/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("kubeVersion: \">=%s.0-0 <1.%d.0-0\"\n", first, last+1)
	for _, file := range append(charts, "../../deploy/chart/Chart.yaml") {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: want %s, %v", file, want, err)
		}
	}
	modules, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	spec := regexp.MustCompile(`container-storage-interface/spec v(1\.\d+)\.`).FindStringSubmatch(string(modules))
	if spec == nil || !strings.Contains(string(page), "CSI "+spec[1]+";") {
		t.Errorf("the page does not have the version of CSI, %q", spec)
	}
}
