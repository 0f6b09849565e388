package emit

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/units"
)

// MainBicep is the file that deploys the modules.
const MainBicep = "main.bicep"

// Bicep returns the template as Bicep, by the paths of its files: main.bicep and a module for each unit. Its deployments, names and
// resources are those of the template of [ARM]. The definition is recorded as it is.
func Bicep(l graph.Linked, n naming.Names, definition any) map[string][]byte {
	p := printer{l: l, names: n}
	files := map[string][]byte{}
	for _, u := range l.Units {
		b := newBicep(p, u)
		files[bicepModule(u.Name)] = []byte(b.unit(hash(p.unit(u, Options{}))))
	}
	files[MainBicep] = []byte(bicepMain(p, definition))
	return files
}

func bicepModule(unit string) string { return "units/" + unit + ".bicep" }

// bicep writes the module of one unit.
type bicep struct {
	printer
	unitNames map[string]string // identifiers of the resources, by symbol
	existing  map[string]string // declarations of resources of others, by identifier
	self      string            // the symbol of the resource that is written
	mentioned map[string]bool   // the symbols that it refers to, which Bicep waits for without dependsOn
}

func newBicep(p printer, u *graph.LinkedUnit) *bicep {
	p.here = u
	b := &bicep{printer: p, unitNames: map[string]string{}, existing: map[string]string{}}
	taken := bicepReserved()
	for _, name := range u.Parameters {
		taken[name] = true
	}
	for name := range u.Inputs {
		taken[name] = true
	}
	for _, r := range u.Resources {
		b.unitNames[r.Symbol] = unique(taken, bicepName(r.Symbol), "Resource")
	}
	return b
}

// bicepReserved are names that have a meaning in Bicep, or are functions that kaz uses.
func bicepReserved() map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq("az existing extension false for func if import in json metadata module null output param " +
		"provider reference resource resourceGroup resourceId sys targetScope true type using var with") {
		all[name] = true
	}
	return all
}

// unique returns a name that is not taken, with a suffix if it is, and takes it.
func unique(taken map[string]bool, name, suffix string) string {
	free := name
	for i := 1; taken[free]; i++ {
		free = name + suffix
		if i > 1 {
			free = fmt.Sprint(name, suffix, i)
		}
	}
	taken[free] = true
	return free
}

// bicepName is an identifier of a name with dashes, which may begin with a digit.
func bicepName(name string) string {
	name = graph.Camel(name)
	if name[0] >= '0' && name[0] <= '9' {
		return "machine" + upper(name)
	}
	return name
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// unit is the text of a module.
func (b *bicep) unit(hash string) string {
	var w strings.Builder
	u := b.here
	for _, name := range u.Parameters {
		w.WriteString(bicepParameter(name, false))
	}
	for _, name := range slices.Sorted(maps.Keys(u.Inputs)) {
		fmt.Fprintf(&w, "param %s string\n", name)
	}
	var resources strings.Builder
	for _, r := range u.Resources {
		resources.WriteString("\n" + b.resource(r))
	}
	for _, name := range slices.Sorted(maps.Keys(b.existing)) {
		w.WriteString("\n" + b.existing[name])
	}
	w.WriteString(resources.String() + "\n")
	b.self = ""
	for _, name := range slices.Sorted(maps.Keys(u.Outputs)) {
		fmt.Fprintf(&w, "output %s string = %s\n", name, b.bicepRuntime(u.Outputs[name]))
	}
	fmt.Fprintf(&w, "output %s string = %s\n", HashOutput, bicepText(hash))
	return strings.TrimLeft(w.String(), "\n")
}

// bicepParameter declares a parameter of the template.
func bicepParameter(name string, withDefault bool) string {
	declaration, value, about := "@secure()\nparam "+name+" string", "''", "Secret "+units.Secrets()[name]+" of the cluster"
	if name == units.SeedSecrets {
		declaration, value, about = "param "+name+" bool", "false", "Whether the secrets are written: true in the first deployment only"
	}
	if !withDefault {
		return declaration + "\n"
	}
	return "@description(" + bicepText(about) + ")\n" + declaration + " = " + value + "\n\n"
}

func (b *bicep) resource(r graph.LinkedResource) string {
	b.self, b.mentioned = r.Symbol, map[string]bool{}
	fields := []string{}
	add := func(name, value string) { fields = append(fields, name+": "+value) }
	name := r.Name
	if parent := b.parent(r); parent != "" {
		add("parent", b.unitNames[parent])
		b.mentioned[parent], name = true, name[strings.LastIndexByte(name, '/')+1:]
	}
	add("name", bicepText(name))
	if !r.Scope.IsZero() {
		add("scope", b.scope(r.Scope))
	}
	for _, key := range slices.Sorted(maps.Keys(r.Body)) {
		add(bicepKey(key), b.print(r.Body[key]))
	}
	var after []string
	for _, symbol := range r.DependsOn {
		if !b.mentioned[symbol] {
			after = append(after, b.unitNames[symbol])
		}
	}
	if len(after) > 0 {
		add("dependsOn", bicepList(after))
	}
	condition := ""
	if r.Condition != "" {
		condition = "if (" + r.Condition + ") "
	}
	return fmt.Sprintf("resource %s %s = %s%s\n", b.unitNames[r.Symbol], bicepText(r.Type+"@"+r.APIVersion()), condition,
		bicepBlock(fields))
}

// parent is the symbol of the resource of this unit that a resource is a child of, "" for none.
func (b *bicep) parent(r graph.LinkedResource) string {
	slash, part := strings.LastIndexByte(r.Name, '/'), strings.LastIndexByte(r.Type, '/')
	if slash < 0 {
		return ""
	}
	for _, other := range b.here.Resources {
		if other.Type == r.Type[:part] && other.Name == r.Name[:slash] {
			return other.Symbol
		}
	}
	return ""
}

// scope is the resource that an extension resource belongs to. One of another unit is declared as existing.
func (b *bicep) scope(r graph.Ref) string {
	unit, symbol := r.Target()
	if own := b.unitNames[symbol]; unit == b.here.Name && own != "" && len(r.Names("")) == 1 {
		b.mentioned[symbol] = true
		return own
	}
	var fullType, name string
	if id, exists := r.Exists(); exists {
		fullType, name = id.Type(), strings.Join(namesOf(id), "/")
	} else {
		target := b.l.Resource(r)
		fullType, name = r.TypeOf(target.Type), strings.Join(r.Names(target.Name), "/")
	}
	declared := "existing" + upper(bicepName(identifier.ReplaceAllString(strings.ToLower(name), "-")))
	b.existing[declared] = fmt.Sprintf("resource %s %s existing = {\n  name: %s\n}\n", declared,
		bicepText(fullType+"@"+existingVersion(fullType)), bicepText(name))
	return declared
}

// namesOf are the segments of the name of an id: its type has a segment for each.
func namesOf(id azure.ID) []string {
	var names []string
	for range strings.Count(id.Type(), "/") {
		names = append([]string{id.Name()}, names...)
		id = id.Parent()
	}
	return names
}

var identifier = regexp.MustCompile(`[^a-z0-9]+`)

// existingVersion is the api-version of a type that kaz refers to and may not deploy.
func existingVersion(fullType string) string {
	if version := graph.Versions()[fullType]; version != "" {
		return version
	}
	return "2023-07-01" // that of container registries
}

// print is an expression for a value of a body.
func (b *bicep) print(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var fields []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			fields = append(fields, bicepKey(key)+": "+b.print(v[key]))
		}
		return bicepBlock(fields)
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, b.print(item))
		}
		return bicepList(items)
	case graph.Keyed:
		key := b.id(v.Key)
		if _, exists := v.Key.Exists(); !exists {
			key = "'${" + key + "}'"
		}
		return bicepBlock([]string{key + ": " + b.print(v.Value)})
	case graph.Port:
		return b.id(graph.Of(v))
	case graph.Runtime:
		return b.bicepRuntime(v)
	case graph.Parameter:
		return string(v)
	default:
		return bicepScalar(v)
	}
}

func bicepScalar(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case graph.Number:
		if v == "-1" {
			return "-1"
		}
		return "json(" + bicepText(string(v)) + ")"
	case string:
		return bicepText(v)
	case float64:
		if v != float64(int64(v)) {
			return fmt.Sprintf("json('%v')", v)
		}
		return fmt.Sprint(int64(v))
	default:
		return fmt.Sprint(v)
	}
}

// id is an expression for the id of a resource. A resource cannot refer to itself by its symbol.
func (b *bicep) id(r graph.Ref) string {
	if id, exists := r.Exists(); exists {
		return bicepText(string(id))
	}
	unit, symbol := r.Target()
	if unit != b.here.Name || symbol == b.self {
		return b.printer.id(r)
	}
	b.mentioned[symbol] = true
	name := b.unitNames[symbol]
	if parts := r.Parts(); len(parts) > 0 {
		return "'${" + name + ".id}/" + strings.Join(parts, "/") + "'"
	}
	return name + ".id"
}

// bicepRuntime is an expression for a value that only Azure knows.
func (b *bicep) bicepRuntime(r graph.Runtime) string {
	unit, symbol := r.Of.Target()
	_, exists := r.Of.Exists()
	switch {
	case exists || unit == b.here.Name && symbol == b.self:
		return b.reference(r)
	case unit != b.here.Name:
		return graph.OutputName(r)
	}
	if b.mentioned != nil {
		b.mentioned[symbol] = true
	}
	return b.unitNames[symbol] + ".properties." + r.Path
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func bicepKey(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return bicepText(key)
}

// bicepText is a text as Bicep has it.
func bicepText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "${", `\${`).Replace(s) + "'"
}

func indented(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// bicepBlock is an object with one field a line.
func bicepBlock(fields []string) string { return enclosed("{", fields, "}") }

// bicepList is a list with one item a line.
func bicepList(items []string) string { return enclosed("[", items, "]") }

func enclosed(begin string, lines []string, end string) string {
	if len(lines) == 0 {
		return begin + end
	}
	var w strings.Builder
	w.WriteString(begin + "\n")
	for _, line := range lines {
		w.WriteString(indented(line) + "\n")
	}
	return w.String() + end
}

// bicepMain is the text of main.bicep.
func bicepMain(p printer, definition any) string {
	p.here = &graph.LinkedUnit{}
	var w strings.Builder
	w.WriteString("targetScope = 'resourceGroup'\n\n")
	taken := bicepReserved()
	taken[DefinitionParameter] = true
	for _, name := range used(p.l, Options{}) {
		taken[name] = true
		w.WriteString(bicepParameter(name, true))
	}
	b := &bicep{printer: p, mentioned: map[string]bool{}}
	fmt.Fprintf(&w, "@description(%s)\nparam %s object = %s\n", bicepText(definitionText), DefinitionParameter, b.print(plain(definition)))
	modules := map[string]string{}
	for _, u := range p.l.Units {
		modules[u.Name] = unique(taken, bicepName(u.Name), "Unit")
	}
	for _, u := range p.l.Units {
		w.WriteString("\n" + p.module(u, modules))
	}
	fmt.Fprintf(&w, "\noutput apiServer object = %s\n", b.print(apiServer(p.names)))
	return w.String()
}

// module is the deployment of a unit in main.bicep.
func (p printer) module(u *graph.LinkedUnit, modules map[string]string) string {
	fields := []string{"name: " + bicepText(p.names.UnitDeployment(u.Name))}
	if g := u.Unit.Group; g != "" {
		args := quoted(g.Group())
		if !strings.EqualFold(g.Subscription(), p.names.Group().Subscription()) {
			args = quoted(g.Subscription(), g.Group())
		}
		fields = append(fields, "scope: resourceGroup("+args+")")
	}
	var given []string
	for _, name := range u.Parameters {
		given = append(given, name+": "+name)
	}
	mentioned := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(u.Inputs)) {
		unit, _ := u.Inputs[name].Of.Target()
		mentioned[unit] = true
		given = append(given, name+": "+modules[unit]+".outputs."+name)
	}
	if len(given) > 0 {
		fields = append(fields, "params: "+bicepBlock(given))
	}
	var after []string
	for _, unit := range u.After {
		if !mentioned[unit] {
			after = append(after, modules[unit])
		}
	}
	if len(after) > 0 {
		fields = append(fields, "dependsOn: "+bicepList(after))
	}
	return fmt.Sprintf("module %s %s = %s\n", modules[u.Name], bicepText(bicepModule(u.Name)), bicepBlock(fields))
}
