package docs_test

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	// link is a link of Markdown, or a picture.
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.+?) *#*$`)
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestLinks checks that each link of a page to this repository leads to a file, and to a heading if it names one.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil || len(pages) < 100 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	anchors := map[string]map[string]bool{}
	links := 0
	for _, page := range pages {
		for _, target := range linksOf(prose(t, page)) {
			to, err := url.Parse(target)
			if err != nil || to.IsAbs() {
				continue
			}
			links++
			file := page
			if to.Path != "" {
				file = filepath.Join(filepath.Dir(page), to.Path)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s: %v", page, target, err)
				continue
			}
			if to.Fragment == "" || !strings.HasSuffix(file, ".md") {
				continue
			}
			if anchors[file] == nil {
				anchors[file] = anchorsOf(prose(t, file))
			}
			if !anchors[file][to.Fragment] {
				t.Errorf("%s: %s: no heading has this anchor", page, target)
			}
		}
	}
	if links < 400 {
		t.Errorf("only %d links were found", links)
	}
}

// prose returns the lines of a page that are not in a block of code.
func prose(t *testing.T, file string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fence := ""
	for line := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence == "" && strings.HasPrefix(trimmed, "```"):
			fence = "```"
		case fence != "" && strings.HasPrefix(trimmed, fence):
			fence = ""
		case fence == "":
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

func linksOf(lines []string) (all []string) {
	for _, line := range lines {
		for _, m := range link.FindAllStringSubmatch(quoted.ReplaceAllString(line, "code"), -1) {
			all = append(all, m[1])
		}
	}
	return all
}

// anchorsOf returns the anchors of the headings of a page, as GitHub and the site make them.
func anchorsOf(lines []string) map[string]bool {
	all := map[string]bool{}
	for _, line := range lines {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, linked.ReplaceAllString(m[1], "$1"))
		all[anchor] = true
	}
	return all
}
