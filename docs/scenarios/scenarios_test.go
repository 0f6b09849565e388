// Package scenarios_test checks the pages of this folder: what they name is there.
package scenarios_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// tests are what the test files and the test data of a folder name.
type tests struct {
	functions map[string]bool
	names     map[string]bool   // texts in test files and testkit, and test data's file names
	about     map[string]string // what is said above a function and at the top of test data
}

// repository reads the tests of the whole repository, by folder.
func repository(t *testing.T) map[string]*tests {
	t.Helper()
	all := map[string]*tests{}
	of := func(folder string) *tests {
		if all[folder] == nil {
			all[folder] = &tests{functions: map[string]bool{}, names: map[string]bool{}, about: map[string]string{}}
		}
		return all[folder]
	}
	for _, top := range []string{"internal", "cmd", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			folder := filepath.ToSlash(filepath.Dir(relative))
			if before, _, ok := strings.Cut(folder+"/", "/testdata/"); ok {
				return of(before).readData(path)
			}
			if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(folder, "testkit") && strings.HasSuffix(path, ".go") {
				return of(folder).read(path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func (s *tests) readData(path string) error {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	s.names[name] = true
	if filepath.Ext(path) != ".txtar" {
		return nil
	}
	text, err := os.ReadFile(path)
	top, _, _ := strings.Cut(string(text), "\n-- ")
	s.about[name] = top
	return err
}

func (s *tests) read(path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			s.functions[n.Name.Name] = true
			s.about[n.Name.Name] = n.Doc.Text()
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				s.names[text] = true
			}
		}
		return true
	})
	return nil
}

// rows are the lines of a page's first table, cell by cell, with their number first.
func rows(t *testing.T, page string) [][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(text), "\n## ")
	var found [][]string
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if _, err := strconv.Atoi(cells[0]); err == nil {
			found = append(found, cells)
		}
	}
	for i, r := range found {
		if r[0] != strconv.Itoa(i+1) {
			t.Fatalf("%s: row %s where %d is due", page, r[0], i+1)
		}
	}
	return found
}

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	named  = regexp.MustCompile(`^([a-z0-9/-]+)\.((?:Test|Fuzz)\w+)(?:/(.+))?$`)
)

func TestNodes(t *testing.T) {
	all := repository(t)
	found := rows(t, "nodes.md")
	if len(found) != 125 {
		t.Errorf("%d rows, want 125", len(found))
	}
	for _, row := range found {
		if len(row) != 4 {
			t.Errorf("row %s has %d cells, want 4", row[0], len(row))
			continue
		}
		references := quoted.FindAllStringSubmatch(row[3], -1)
		if len(references) == 0 && !strings.HasPrefix(row[3], "absent: ") && !strings.HasPrefix(row[3], "left out: ") {
			t.Errorf("row %s: %q names no test and does not say what is absent", row[0], row[3])
		}
	}
	text, err := os.ReadFile("nodes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(text), "\n| row |")
	for _, r := range quoted.FindAllStringSubmatch(tables, -1) {
		if wrong := check(all, r[1]); wrong != "" {
			t.Errorf("%s: %s", r[1], wrong)
		}
	}
}

// check says what is wrong with the name of a test.
func check(all map[string]*tests, name string) string {
	parts := named.FindStringSubmatch(name)
	if parts == nil {
		return "not FOLDER.TestNAME or FOLDER.TestNAME/CASE"
	}
	folder := all["internal/"+parts[1]]
	if folder == nil {
		folder = all[parts[1]]
	}
	switch {
	case folder == nil:
		return parts[1] + " has no tests"
	case !folder.functions[parts[2]]:
		return "there is no " + parts[2] + " in " + parts[1]
	case parts[3] != "" && !folder.names[parts[3]]:
		return parts[2] + " has no case " + strconv.Quote(parts[3])
	}
	return ""
}

// Of load balancers the page names stories of the planner, tests, and scenarios of the
// library.
func TestLoadBalancers(t *testing.T) {
	all := repository(t)
	known := func(name string) bool {
		if _, err := os.Stat(filepath.Join(root, name)); err == nil || all["internal/plan/loadbalancer"].names[name] {
			return true
		}
		for _, s := range all {
			if s.functions[name] {
				return true
			}
		}
		return false
	}
	found := rows(t, "load-balancer.md")
	if len(found) != 105 {
		t.Errorf("%d rows, want 105", len(found))
	}
	storyless := regexp.MustCompile(`^(absent( here)?: |every story: |left out$)`)
	scenario := regexp.MustCompile(`\b[01]\d{2} [^,;]+`)
	for _, row := range found {
		told := false
		for _, name := range quoted.FindAllStringSubmatch(row[2], -1) {
			if !known(name[1]) {
				t.Errorf("row %s: there is no %s", row[0], name[1])
			}
			_, err := os.Stat(filepath.Join(root, "internal/plan/loadbalancer/testdata", name[1]+".txtar"))
			told = told || err == nil
		}
		if !told && !storyless.MatchString(row[2]) {
			t.Errorf("row %s: %q names no story of the planner and does not say why there is none", row[0], row[2])
		}
		if len(row) < 4 || row[3] == "" && row[2] != "left out" {
			t.Errorf("row %s has no component test", row[0])
			continue
		}
		for _, name := range scenario.FindAllString(row[3], -1) {
			if !all["internal/testkit"].names[name] {
				t.Errorf("row %s: the library has no scenario %q", row[0], name)
			}
		}
		for _, name := range quoted.FindAllStringSubmatch(row[3], -1) {
			if function, _, _ := strings.Cut(name[1], "/"); !known(function) {
				t.Errorf("row %s: there is no %s", row[0], function)
			}
		}
	}
}

// Every defect of others but those that have to stay is in the page's table, with tests that
// are there and of which one says that it is about it.
func TestDefectsOfOthers(t *testing.T) {
	all := repository(t)
	text, err := os.ReadFile("load-balancer.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Defects of others\n")
	defect := regexp.MustCompile(`\bD\d+\b`)
	shown := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, d := range defect.FindAllString(cells[1], -1) {
			shown[d] = true
			if wrong := checkDefect(all, d, quoted.FindAllStringSubmatch(cells[3], -1)); wrong != "" {
				t.Errorf("%s: %s", d, wrong)
			}
		}
	}
	const last = 45
	stay := map[string]bool{"D25": true, "D44": true}
	for i := range last {
		if d := "D" + strconv.Itoa(i+1); shown[d] == stay[d] {
			t.Errorf("%s is in the table: %v", d, shown[d])
		}
	}
}

// checkDefect says what is wrong with the tests that show a defect.
func checkDefect(all map[string]*tests, defect string, names [][]string) string {
	about := ""
	for _, name := range names {
		known := false
		for _, s := range all {
			if said, ok := s.about[name[1]]; ok {
				known = true
				about += name[1] + " " + said + "\n"
			}
		}
		if !known {
			return "there is no " + name[1]
		}
	}
	if !regexp.MustCompile(`\b` + defect + `\b`).MatchString(about) {
		return "no test says that it is about it"
	}
	return ""
}

// TestEngine checks the page of kaz cluster: it has all scenarios, and each row names a test that exists or says why there is none.
func TestEngine(t *testing.T) {
	all := repository(t)
	found := rows(t, "engine.md")
	if len(found) != 55 {
		t.Errorf("%d rows, want 55", len(found))
	}
	reason := regexp.MustCompile(`^(absent\b|not run: |not here: )`)
	for _, row := range found {
		if len(row) != 4 || !quoted.MatchString(row[3]) && !reason.MatchString(row[3]) {
			t.Errorf("row %s names no test and does not say what is absent", row[0])
		}
	}
	text, err := os.ReadFile("engine.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| row |")
	for _, name := range quoted.FindAllStringSubmatch(table, -1) {
		if wrong := check(all, name[1]); wrong != "" && name[1] != "kaz cluster" {
			t.Errorf("%s: %s", name[1], wrong)
		}
	}
}

// TestFiles checks the page of file shares. All tests that it names exist. Its second table has each defect of the other driver
// with a test or with why there is none.
func TestFiles(t *testing.T) {
	all := repository(t)
	text, err := os.ReadFile("files.md")
	if err != nil {
		t.Fatal(err)
	}
	scenarios, defects, _ := strings.Cut(string(text), "\n## Defects of others\n")
	reason := regexp.MustCompile(`\b(not there: |no test yet\b)`)
	next := 1
	for i, table := range []string{scenarios, defects} {
		for line := range strings.Lines(table) {
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			if !strings.HasPrefix(line, "| ") || len(cells) < 3 {
				continue
			}
			tests := cells[len(cells)-1]
			found := 0
			for _, name := range quoted.FindAllStringSubmatch(tests, -1) {
				if !strings.Contains(name[1], ".Test") {
					continue // a parameter
				}
				found++
				if wrong := check(all, name[1]); wrong != "" {
					t.Errorf("%s: %s", name[1], wrong)
				}
			}
			number, err := strconv.Atoi(strings.TrimSpace(cells[0]))
			if i == 0 || err != nil {
				continue
			}
			if number != next || found == 0 && !reason.MatchString(tests) {
				t.Errorf("defect %d: want defect %d here, with a test or why there is none", number, next)
			}
			next = number + 1
		}
	}
	if next != 40 {
		t.Errorf("%d defects, want 39", next-1)
	}
}
