package deploy_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kaz/deploy"
)

// exported are the metrics of the reference, with their kinds.
func exported(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\| (counter|gauge|histogram) \\| (.*?) \\|").FindAllStringSubmatch(string(page), -1) {
		kinds[row[1]] = row[2] + " " + row[3]
	}
	if len(kinds) < 40 {
		t.Fatalf("only %d metrics in the reference", len(kinds))
	}
	return kinds
}

var (
	series  = regexp.MustCompile(`\b(?:kaz|arm_request|cloudprovider_azure|azuredisk_csi|azurefile_csi|node_ipam|service_controller)_[a-z0-9_]+\b`)
	grouped = regexp.MustCompile(`by \(([^)]*)\)`)
	chosen  = regexp.MustCompile(`\{([a-zA-Z_]+)=`)
	legends = regexp.MustCompile(`\{\{ ?\$?(?:labels\.)?([a-zA-Z_]+) ?\}\}`)
)

// check reports metrics and labels of an expression that no program exports, and labels of a text that the expression does not keep.
func check(t *testing.T, where, expr, text string, kinds map[string]string) {
	t.Helper()
	labels := ""
	for _, name := range series.FindAllString(expr, -1) {
		metric := regexp.MustCompile(`_(bucket|count|sum)$`).ReplaceAllString(name, "")
		kind, found := kinds[metric]
		if isPart := metric != name; !found || !strings.HasPrefix(kind, "histogram") {
			if kind, found = kinds[name]; !found || isPart && strings.HasPrefix(kind, "histogram") {
				t.Errorf("%s: no program exports %s", where, name)
			}
		} else if !isPart {
			t.Errorf("%s: %s is a histogram: want its _bucket, _count or _sum", where, name)
		}
		if strings.Contains(expr, "rate("+name) && strings.HasPrefix(kind, "gauge") {
			t.Errorf("%s: the rate of %s, which is a gauge", where, name)
		}
		labels += kind + " `le`"
	}
	used := chosen.FindAllStringSubmatch(expr, -1)
	for _, group := range grouped.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(group[1], ", ") {
			if label != "" {
				used = append(used, []string{"", label})
			}
		}
	}
	for _, label := range append(used, legends.FindAllStringSubmatch(text, -1)...) {
		if !strings.Contains(labels, "`"+label[1]+"`") {
			t.Errorf("%s: the metrics of %s have no label %s", where, expr, label[1])
		}
	}
	for _, label := range legends.FindAllStringSubmatch(text, -1) {
		if group := grouped.FindStringSubmatch(expr); group != nil && !slices.Contains(strings.Split(group[1], ", "), label[1]) {
			t.Errorf("%s: the label %s is lost in %s", where, label[1], expr)
		}
	}
}

// TestDashboards compares the files of the dashboards with their table, and the table with the metrics of the reference.
func TestDashboards(t *testing.T) {
	kinds := exported(t)
	all := deploy.Dashboards()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, err := all[name].Text()
		if err != nil {
			t.Fatal(err)
		}
		same(t, filepath.Join("chart", "dashboards", name+".json"), string(text))
		for _, p := range all[name].Panels {
			for _, q := range p.Queries {
				check(t, name+": "+p.Title, q.Expr, q.Legend, kinds)
			}
		}
	}
	files, err := filepath.Glob("chart/dashboards/*.json")
	if err != nil || len(files) != len(all) {
		t.Errorf("files %q for %d dashboards, %v", files, len(all), err)
	}
}

// TestAlerts compares the file of the alerts with their table, and the table with the metrics of the reference.
func TestAlerts(t *testing.T) {
	kinds := exported(t)
	text, err := deploy.AlertRules()
	if err != nil {
		t.Fatal(err)
	}
	same(t, filepath.Join("chart", "alerts", "kaz.yaml"), string(text))
	for _, a := range deploy.Alerts() {
		check(t, a.Name, a.Expr, a.Summary+a.Mend, kinds)
	}
}
