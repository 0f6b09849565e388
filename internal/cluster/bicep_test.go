package cluster

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
)

// TestBicep checks that the Bicep modules say the same as the template for Azure Resource Manager. A reader of the part of
// Bicep that kaz writes must find the same parameters, resources with their order, and outputs. The reader is no compiler of
// Bicep.
func TestBicep(t *testing.T) {
	for name, files := range planExamples() {
		t.Run(name, func(t *testing.T) {
			p := plan(t, example(t, files...))
			modules := p.Files(Bicep)
			main := readBicep(t, p, "main.bicep", string(modules["main.bicep"]), nil)
			template := map[string]any{}
			if err := json.Unmarshal(p.Files(ARM)["template.json"], &template); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(armMain(p, template), main.summary(), cmp.Comparer(sameNumber)); diff != "" {
				t.Errorf("main.bicep (-ARM +Bicep):\n%s", diff)
			}
			for _, u := range p.Graph.Units {
				group := p.Names.Group()
				if u.Unit.Group != "" {
					group = u.Unit.Group
				}
				unit := map[string]any{}
				if err := json.Unmarshal(p.Files(ARM)["units/"+u.Name+".json"], &unit); err != nil {
					t.Fatal(err)
				}
				file := "units/" + u.Name + ".bicep"
				got := readBicep(t, p, file, string(modules[file]), &group).summary()
				if diff := cmp.Diff(armSummary(unit, group), got, cmp.Comparer(sameNumber)); diff != "" {
					t.Errorf("%s (-ARM +Bicep):\n%s", file, diff)
				}
			}
		})
	}
}

func sameNumber(a, b float64) bool { return a == b }

// planExamples are the definitions whose generated files are compared.
func planExamples() map[string][]string {
	return map[string][]string{"dev": {"dev.yaml"}, "teams": {"ha.yaml", "team-a.yaml", "team-b.yaml"}}
}

// Expressions of templates are normalized, so that both languages give the same text.
var (
	resourceIDCall = regexp.MustCompile(`resourceId\(([^()]*)\)`)
	parameterCall  = regexp.MustCompile(`parameters\('([^']*)'\)`)
	outputCall     = regexp.MustCompile(`^reference\('([^']*)'\)\.outputs\.(\w+)\.value$`)
	referenceCall  = regexp.MustCompile(`^reference\('([^']*)', '([^']*)'\)\.(\w+)$`)
	jsonCall       = regexp.MustCompile(`^json\('([^']*)'\)$`)
)

// armValue normalizes a value of a template in a resource group.
func armValue(v any, group azure.ID) any {
	switch v := v.(type) {
	case map[string]any:
		all := map[string]any{}
		for key, item := range v {
			all[fmt.Sprint(armValue(key, group))] = armValue(item, group)
		}
		return all
	case []any:
		all := []any{}
		for _, item := range v {
			all = append(all, armValue(item, group))
		}
		return all
	case string:
		if rest, escaped := strings.CutPrefix(v, "[["); escaped {
			return "[" + rest
		}
		if inner, ok := strings.CutPrefix(v, "["); ok {
			return armExpression(strings.TrimSuffix(inner, "]"), group)
		}
		return v
	default:
		return v
	}
}

func armExpression(text string, group azure.ID) any {
	text = resourceIDCall.ReplaceAllStringFunc(text, func(call string) string {
		var args []string
		for arg := range strings.SplitSeq(resourceIDCall.FindStringSubmatch(call)[1], ", ") {
			args = append(args, strings.Trim(arg, "'"))
		}
		return "'" + resourceID(args, group) + "'"
	})
	text = parameterCall.ReplaceAllString(text, "<parameter $1>")
	if m := outputCall.FindStringSubmatch(text); m != nil {
		return "<output " + azure.ID(m[1]).Name() + " " + m[2] + ">"
	}
	if m := referenceCall.FindStringSubmatch(text); m != nil {
		return "<" + m[1] + " " + m[2] + " " + m[3] + ">"
	}
	if m := jsonCall.FindStringSubmatch(text); m != nil {
		n, _ := strconv.ParseFloat(m[1], 64)
		return n
	}
	return strings.Trim(text, "'")
}

// resourceID is the result of the function of the same name.
func resourceID(args []string, group azure.ID) string {
	for i, arg := range args {
		if !strings.Contains(arg, "/") {
			continue
		}
		switch i {
		case 1:
			group = azure.GroupID(group.Subscription(), args[0])
		case 2:
			group = azure.GroupID(args[0], args[1])
		}
		namespace, types, _ := strings.Cut(arg, "/")
		id := string(group) + "/providers/" + namespace
		for n, kind := range strings.Split(types, "/") {
			id += "/" + kind + "/" + args[i+1+n]
		}
		return id
	}
	return "no type in " + strings.Join(args, " ")
}

// armSummary is what a template of a unit says, normalized.
func armSummary(template map[string]any, group azure.ID) map[string]any {
	s := map[string]any{"parameters": template["parameters"], "outputs": armValue(template["outputs"], group)}
	var resources []any
	for _, item := range template["resources"].([]any) {
		r := armValue(item, group).(map[string]any)
		r["dependsOn"] = sortedTexts(r["dependsOn"])
		resources = append(resources, r)
	}
	s["resources"] = resources
	return s
}

// armMain is what the main template says: its deployments without the templates in them.
func armMain(p Plan, template map[string]any) map[string]any {
	s := armSummary(template, p.Names.Group())
	for _, item := range s["resources"].([]any) {
		r := item.(map[string]any)
		properties := r["properties"].(map[string]any)
		given := map[string]any{}
		for name, value := range properties["parameters"].(map[string]any) {
			given[name] = value.(map[string]any)["value"]
		}
		delete(r, "apiVersion")
		r["properties"] = given
		after := []string{}
		for _, id := range r["dependsOn"].([]string) {
			after = append(after, azure.ID(id).Name())
		}
		slices.Sort(after)
		r["dependsOn"] = after
	}
	return s
}

func sortedTexts(v any) []string {
	all := []string{}
	if items, ok := v.([]any); ok {
		for _, item := range items {
			all = append(all, fmt.Sprint(item))
		}
	}
	slices.Sort(all)
	return all
}

// bicepFile is what a file of Bicep says.
type bicepFile struct {
	t          *testing.T
	file       string
	rest       string
	names      Plan
	group      *azure.ID
	parameters map[string]any
	symbols    map[string]bicepSymbol
	outputs    map[string]any
	resources  []any
	uses       map[string]bool // symbols that the declaration at hand uses
}

// bicepSymbol is a resource or a module.
type bicepSymbol struct {
	id, version, fullType, name string
	module, existing            bool
}

func (f *bicepFile) summary() map[string]any {
	return map[string]any{"parameters": f.parameters, "outputs": f.outputs, "resources": f.resources}
}

var (
	bicepParam    = regexp.MustCompile(`^(@description\('((?:[^'\\]|\\.)*)'\)\n)?(@secure\(\)\n)?param (\w+) (\w+)( = )?`)
	bicepDeclared = regexp.MustCompile(`(?m)^(resource|module) (\w+) '([^']*)' (existing )?= (?:if \((\w+)\) )?`)
	bicepOutput   = regexp.MustCompile(`^output (\w+) (\w+) = `)
	bicepIdent    = regexp.MustCompile(`^[A-Za-z_]\w*`)
	bicepNumber   = regexp.MustCompile(`^-?\d+`)
)

// readBicep reads a file. group is nil for main.bicep.
func readBicep(t *testing.T, p Plan, file, text string, group *azure.ID) *bicepFile {
	t.Helper()
	f := &bicepFile{t: t, file: file, rest: text, names: p, group: group, parameters: map[string]any{}, symbols: map[string]bicepSymbol{},
		outputs: map[string]any{}, uses: map[string]bool{}}
	f.declare(text)
	f.rest = strings.TrimPrefix(f.rest, "targetScope = 'resourceGroup'\n")
	for {
		f.rest = strings.TrimLeft(f.rest, "\n")
		switch {
		case f.rest == "":
			return f
		case strings.HasPrefix(f.rest, "output "):
			m := f.match(bicepOutput)
			f.outputs[m[1]] = map[string]any{"type": m[2], "value": f.value()}
		case strings.HasPrefix(f.rest, "resource "), strings.HasPrefix(f.rest, "module "):
			f.declaration()
		default:
			f.parameter()
		}
	}
}

// declare finds the names of all resources, which others may refer to before they are declared.
func (f *bicepFile) declare(text string) {
	for _, at := range bicepDeclared.FindAllStringSubmatchIndex(text, -1) {
		m := bicepDeclared.FindStringSubmatch(text[at[0]:])
		inner := &bicepFile{t: f.t, file: f.file, rest: text[at[1]:], symbols: map[string]bicepSymbol{}, uses: map[string]bool{}, group: f.group}
		name, parent := inner.heading()
		s := bicepSymbol{module: m[1] == "module", existing: m[4] != "", name: name}
		if !s.module {
			s.fullType, s.version, _ = strings.Cut(m[3], "@")
			if parent != "" {
				s.name = f.symbols[parent].name + "/" + name
			}
			s.id = resourceID(append([]string{s.fullType}, strings.Split(s.name, "/")...), *f.group)
		}
		if _, twice := f.symbols[m[2]]; twice {
			f.t.Errorf("%s: %s is declared twice", f.file, m[2])
		}
		f.symbols[m[2]] = s
	}
}

var (
	bicepName   = regexp.MustCompile(`(?m)^  name: '([^']*)'$`)
	bicepParent = regexp.MustCompile(`^\{\n  parent: (\w+)\n`)
)

// heading is the name and the parent of a declaration.
func (f *bicepFile) heading() (name, parent string) {
	if m := bicepParent.FindStringSubmatch(f.rest); m != nil {
		parent = m[1]
	}
	m := bicepName.FindStringSubmatch(f.rest)
	if m == nil {
		f.t.Fatalf("%s: a declaration has no name: %.100s", f.file, f.rest)
	}
	return m[1], parent
}

func (f *bicepFile) match(r *regexp.Regexp) []string {
	m := r.FindStringSubmatch(f.rest)
	if m == nil || !strings.HasPrefix(f.rest, m[0]) {
		f.t.Fatalf("%s: want %s at: %.100q", f.file, r, f.rest)
	}
	f.rest = f.rest[len(m[0]):]
	return m
}

func (f *bicepFile) parameter() {
	m := f.match(bicepParam)
	p := map[string]any{"type": m[5]}
	if m[3] != "" {
		p["type"] = "secure" + m[5]
	}
	if m[2] != "" {
		p["metadata"] = map[string]any{"description": m[2]}
	}
	if m[6] != "" {
		p["defaultValue"] = f.value()
	}
	f.parameters[m[4]] = p
}

func (f *bicepFile) declaration() {
	m := f.match(bicepDeclared)
	f.uses = map[string]bool{}
	body, ok := f.value().(map[string]any)
	if !ok {
		f.t.Fatalf("%s: %s has no body", f.file, m[2])
	}
	s := f.symbols[m[2]]
	if s.existing {
		return
	}
	after := []string{}
	for symbol := range f.uses {
		used := f.symbols[symbol]
		switch {
		case used.module:
			after = append(after, used.name)
		case !used.existing:
			after = append(after, used.id)
		}
	}
	slices.Sort(after)
	if s.module {
		f.resources = append(f.resources, f.module(m, body, after))
		return
	}
	delete(body, "parent")
	body["name"], body["type"], body["apiVersion"], body["dependsOn"] = s.name, s.fullType, s.version, after
	if m[5] != "" {
		body["condition"] = "<parameter " + m[5] + ">"
	}
	f.resources = append(f.resources, body)
}

func (f *bicepFile) module(m []string, body map[string]any, after []string) map[string]any {
	if want := "units/" + strings.TrimPrefix(fmt.Sprint(body["name"]), f.names.Names.Cluster+"-") + ".bicep"; m[3] != want {
		f.t.Errorf("module %s is %s, want %s", m[2], m[3], want)
	}
	given, _ := body["params"].(map[string]any)
	if given == nil {
		given = map[string]any{}
	}
	r := map[string]any{"type": "Microsoft.Resources/deployments", "name": body["name"], "properties": given, "dependsOn": after}
	if scope, ok := body["scope"].([]string); ok {
		r["resourceGroup"] = scope[len(scope)-1]
		if len(scope) == 2 {
			r["subscriptionId"] = scope[0]
		}
	}
	return r
}

// value reads an expression.
func (f *bicepFile) value() any {
	switch {
	case strings.HasPrefix(f.rest, "{"):
		return f.object()
	case strings.HasPrefix(f.rest, "["):
		items := []any{}
		f.lines("[", "]", func() { items = append(items, f.value()) })
		return items
	case strings.HasPrefix(f.rest, "'"):
		return f.text()
	case bicepNumber.MatchString(f.rest):
		n, err := strconv.ParseFloat(f.match(bicepNumber)[0], 64)
		if err != nil {
			f.t.Fatal(err)
		}
		return n
	default:
		return f.name()
	}
}

// lines reads what is enclosed, an item a line.
func (f *bicepFile) lines(begin, end string, item func()) {
	f.skip(begin)
	if strings.HasPrefix(f.rest, end) {
		f.skip(end)
		return
	}
	for {
		f.skip("\n")
		f.rest = strings.TrimLeft(f.rest, " ")
		if strings.HasPrefix(f.rest, end) {
			f.skip(end)
			return
		}
		item()
	}
}

func (f *bicepFile) skip(text string) {
	rest, ok := strings.CutPrefix(f.rest, text)
	if !ok {
		f.t.Fatalf("%s: want %q at: %.100q", f.file, text, f.rest)
	}
	f.rest = rest
}

func (f *bicepFile) object() map[string]any {
	all := map[string]any{}
	f.lines("{", "}", func() {
		var key string
		if strings.HasPrefix(f.rest, "'") {
			key = f.text()
		} else {
			key = f.match(bicepIdent)[0]
		}
		f.skip(": ")
		if _, twice := all[key]; twice {
			f.t.Errorf("%s: the key %s stands twice in an object", f.file, key)
		}
		all[key] = f.value()
	})
	return all
}

// text reads a text with its escapes and expressions.
func (f *bicepFile) text() string {
	var b strings.Builder
	f.skip("'")
	escapes := map[byte]string{'\\': `\`, '\'': "'", 'n': "\n", 'r': "\r", 't': "\t", '$': "$"}
	for {
		switch {
		case strings.HasPrefix(f.rest, "'"):
			f.skip("'")
			return b.String()
		case strings.HasPrefix(f.rest, "${"):
			f.skip("${")
			fmt.Fprint(&b, f.value())
			f.skip("}")
		case strings.HasPrefix(f.rest, `\`):
			plain, known := escapes[f.rest[1]]
			if !known {
				f.t.Fatalf("%s: there is no escape %.2s", f.file, f.rest)
			}
			b.WriteString(plain)
			f.rest = f.rest[2:]
		case f.rest == "" || f.rest[0] == '\n':
			f.t.Fatalf("%s: a text does not end", f.file)
		default:
			b.WriteByte(f.rest[0])
			f.rest = f.rest[1:]
		}
	}
}

// name reads what begins with a name: a literal, a call, a symbol with its properties or a parameter.
func (f *bicepFile) name() any {
	name := f.match(bicepIdent)[0]
	switch name {
	case "true", "false":
		return name == "true"
	case "null":
		return nil
	}
	if strings.HasPrefix(f.rest, "(") {
		return f.call(name)
	}
	s, known := f.symbols[name]
	if !known {
		return "<parameter " + name + ">"
	}
	f.uses[name] = true
	switch {
	case strings.HasPrefix(f.rest, ".id"):
		f.skip(".id")
	case strings.HasPrefix(f.rest, ".properties."):
		f.skip(".properties.")
		return "<" + s.id + " " + s.version + " " + f.match(bicepIdent)[0] + ">"
	case strings.HasPrefix(f.rest, ".outputs."):
		f.skip(".outputs.")
		return "<output " + s.name + " " + f.match(bicepIdent)[0] + ">"
	}
	return s.id
}

func (f *bicepFile) call(name string) any {
	f.skip("(")
	var args []string
	for !strings.HasPrefix(f.rest, ")") {
		args = append(args, fmt.Sprint(f.value()))
		f.rest = strings.TrimPrefix(f.rest, ", ")
	}
	f.skip(")")
	switch name {
	case "resourceId":
		return resourceID(args, *f.group)
	case "resourceGroup":
		return args
	case "json":
		n, err := strconv.ParseFloat(args[0], 64)
		if err != nil {
			f.t.Error(err)
		}
		return n
	case "reference":
		f.skip(".")
		return "<" + args[0] + " " + args[1] + " " + f.match(bicepIdent)[0] + ">"
	}
	f.t.Fatalf("%s: the function %s is not known", f.file, name)
	return nil
}

// TestParameterNames checks that a module declares each name once, although secrets and their parameters have the same one.
func TestParameterNames(t *testing.T) {
	text := string(plan(t, example(t, "dev.yaml")).Files(Bicep)["units/vault.bicep"])
	for _, want := range []string{"param bootstrapToken string", "resource bootstrapTokenResource 'Microsoft.KeyVault/vaults/secrets@"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("the module has %q %d times", want, strings.Count(text, want))
		}
	}
}
