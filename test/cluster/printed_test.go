package cluster_test

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// documented are commands of README and of the guides that a user runs on the cluster that `make up` starts.
var documented = []struct {
	page, first string // the page, and the first of its commands
	commands    int
	status      int // exit status of the last command
}{
	{page: "README.md", first: ". ~/.kaz/local/env.sh", commands: 10},
	{page: "docs/guides/troubleshooting.md", first: "kaz explain service default/web", commands: 1},
	{page: "docs/guides/network.md", first: "kaz local status", commands: 3},
	{page: "docs/guides/local-azure.md", first: "kaz local azure list", commands: 4},
	{page: "docs/guides/shadow.md", first: "kaz shadow", commands: 1},
	{page: "docs/guides/explain.md", first: "kubectl apply -f docs/example-manifests/service/external.yaml", commands: 1},
	{page: "docs/guides/explain.md", first: "kaz explain service --all", commands: 1},
	{page: "docs/guides/explain.md", first: "kubectl annotate service external", commands: 2, status: 1},
	{page: "docs/guides/explain.md", first: "kaz explain nodegroup nodes0 --nodes", commands: 1},
}

// documentedCommands runs what is printed, as it is printed: in the home folder of a user whose cluster this is.
func documentedCommands(c *cluster) {
	home := c.homeOf()
	defer c.must("", "delete", "--ignore-not-found", "service/web", "deployment/web", "service/external")
	for _, p := range documented {
		lines := c.printedFrom(p.page, p.first, p.commands)
		for i := range lines[:len(lines)-1] {
			lines[i] = mayJoinLater(lines[i])
		}
		began := time.Now()
		said, got := c.runPrinted(home, lines)
		if got != p.status {
			c.t.Errorf("%s: exit status %d, want %d:\n%s", p.page, got, p.status, said)
		}
		c.t.Logf("%s: %q after %s", p.page, lines[len(lines)-1], short(time.Since(began)))
	}
}

// printedFrom returns commands of a page, from the one that begins with first.
func (c *cluster) printedFrom(page, first string, count int) []string {
	c.t.Helper()
	var lines []string
	for line := range strings.Lines(string(readFile(c.t, filepath.Join("..", "..", page)))) {
		lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "$ "))
	}
	from := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, first) })
	if from < 0 {
		c.t.Fatalf("%s has no line that begins with %q", page, first)
	}
	return lines[from : from+count]
}
