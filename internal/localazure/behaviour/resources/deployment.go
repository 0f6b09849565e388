package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/template"
	"kaz/internal/template/types"
)

const deploymentType = "Microsoft.Resources/deployments"

// Private fields of a deployment: its template, the parameters as they were given,
// and its steps.
const (
	templateField   = behaviour.Private + "template"
	parametersField = behaviour.Private + "parameters"
	operationsField = behaviour.Private + "operations"
	// progressField has the resources of a running deployment, by key. The value is true for a resource that is made, and
	// false while its operation runs.
	progressField = behaviour.Private + "progress"
)

func deployments() behaviour.Type {
	return behaviour.Type{
		Name:   deploymentType,
		Style:  behaviour.Deployment(),
		Where:  behaviour.Anywhere,
		Fill:   newDeployment,
		Refuse: checkEnded,
		Settle: deploy,
		Show:   func(_ *behaviour.Call, view behaviour.Object) { behaviour.Hide(view) },
		Missing: func(c *behaviour.Call) error {
			return behaviour.Gateway(404, "DeploymentNotFound", "Deployment '%s' could not be found.", c.ID.Name())
		},
		Actions: map[string]behaviour.Action{
			"validate": {Do: validate, OnAbsent: true},
			"whatIf":   {Do: whatIf, OnAbsent: true, Long: true, Deferred: true, Busy: "-", Headers: behaviour.Location},
			"cancel": {Status: 204, Do: func(c *behaviour.Call) (any, error) {
				if !c.Cancel(c.ID) {
					return nil, behaviour.Gateway(409, "DeploymentCannotBeCancelled",
						"The deployment '%s' cannot be cancelled: its provisioning state is '%s'.", c.ID.Name(),
						behaviour.Text(c.Old, "properties.provisioningState"))
				}
				return nil, nil
			}},
			"exportTemplate": {Do: func(c *behaviour.Call) (any, error) { return behaviour.Object{"template": c.Old[templateField]}, nil }},
		},
	}
}

var deploymentName = regexp.MustCompile(`^[-\w._()]{1,64}$`)

// newDeployment is fillDeployment for a deployment that gets a place in the history.
func newDeployment(c *behaviour.Call) error {
	if _, err := fillDeployment(c); err != nil {
		return err
	}
	if err := checkHistory(c); err != nil {
		return err
	}
	t, err := bind(c, stored(c.Doc))
	if err != nil {
		return err
	}
	return preflight(c, c, t)
}

// fillDeployment checks what is to be deployed and makes the deployment's document. It makes room in the history. It returns the
// resources that the deployment makes, as far as they are known.
func fillDeployment(c *behaviour.Call) ([]azure.ID, error) {
	if err := checkDeployment(c); err != nil {
		return nil, err
	}
	prune(c)
	s, err := sourceOf(c)
	if err != nil {
		return nil, err
	}
	t, err := bind(c, s)
	if err != nil {
		return nil, err
	}
	n := nesting{}
	if err := n.check(c, s, t, 0); err != nil {
		return nil, err
	}
	if err := n.missingGroup(c); err != nil {
		return nil, err
	}
	if err := denied(c, s, t); err != nil {
		return nil, err
	}
	given := behaviour.Object{}
	for name, value := range t.Parameters {
		given[name] = behaviour.Object{"value": value}
	}
	mode := "Incremental"
	if completes(c.Body) {
		mode = "Complete"
	}
	c.Doc[templateField], c.Doc[parametersField] = behaviour.Clone(s.document), behaviour.Clone(given)
	c.Doc[linkedField] = s.linked
	c.Doc["properties"] = behaviour.Object{
		"templateHash": hash(s.document), "parameters": shownParameters(t), "mode": mode,
		"timestamp": behaviour.Timestamp(c.Now()), "duration": "PT0S", "correlationId": c.GUID(),
		"providers": deployedProviders(t), "dependencies": shownDependencies(t),
	}
	if s.link != nil {
		behaviour.Set(c.Doc, "properties.templateLink", s.link)
	}
	if level := behaviour.Text(c.Body, "properties.debugSetting.detailLevel"); level != "" {
		behaviour.Set(c.Doc, "properties.debugSetting", behaviour.Object{"detailLevel": spelledLevel(level)})
	}
	return n.made, nil
}

// spelledLevel returns a level of details, one or two words, as Azure shows it.
func spelledLevel(level string) string {
	words := strings.Split(level, ",")
	for i, word := range words {
		if word = strings.TrimSpace(word); word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		words[i] = word
	}
	return strings.Join(words, ", ")
}

func completes(body behaviour.Object) bool {
	return strings.EqualFold(behaviour.Text(body, "properties.mode"), "Complete")
}

// checkDeployment checks the frame of a deployment: its name, its location and its mode.
func checkDeployment(c *behaviour.Call) error {
	if err := checkName(c); err != nil {
		return err
	}
	if behaviour.Text(c.Old, "properties.provisioningState") == "Accepted" {
		return behaviour.Gateway(409, "DeploymentActive",
			"Unable to edit or replace deployment '%s': previous deployment from '%s' is still active. Please see "+
				"https://aka.ms/arm-deploy for usage details.", c.ID.Name(), behaviour.Text(c.Old, "properties.timestamp"))
	}
	if c.ID.Group() == "" && behaviour.Text(c.Doc, "location") == "" {
		return behaviour.Gateway(400, "LocationRequired",
			"The 'location' property must be specified for '%s'. Please see https://aka.ms/deploy-to-subscription for usage details.",
			c.ID.Name())
	}
	return checkMode(c)
}

func checkName(c *behaviour.Call) error {
	if !deploymentName.MatchString(c.ID.Name()) {
		return behaviour.Gateway(400, "InvalidDeploymentName",
			"The deployment name '%s' is not valid: 1 to 64 letters, digits, '-', '_', '.', '(' and ')' are allowed.", c.ID.Name())
	}
	return nil
}

func checkMode(c *behaviour.Call) error {
	mode := behaviour.Text(c.Body, "properties.mode")
	switch {
	case strings.EqualFold(mode, "Incremental"):
		return nil
	case !completes(c.Body):
		return behaviour.Gateway(400, "InvalidRequestContent",
			"The request content was invalid: the deployment mode '%s' is not one of Incremental, Complete.", mode)
	case c.ID.Group() == "":
		return behaviour.Gateway(400, "InvalidDeploymentMode",
			"The deployment mode 'Complete' is not supported for deployments at a subscription. Please use the mode 'Incremental'.")
	}
	return nil
}

// authorize refuses a deployment of resources that the caller may not write itself.
func authorize(c *behaviour.Call, t *template.Template) error {
	for _, r := range t.Resources {
		action := behaviour.TypeInActions(r.ID.Type()) + "/write"
		if c.Allowed(c.Caller.Principal, action, r.ID) {
			continue
		}
		application, object := c.Caller.Principal.IDs()
		return behaviour.Gateway(403, "InvalidTemplateDeployment",
			"Deployment failed with multiple errors: 'Authorization failed for template resource '%s' of type '%s'. The client '%s' "+
				"with object id '%s' does not have permission to perform action '%s' at scope '%s'.'",
			r.ID.Name(), r.ID.Type(), application, object, action, r.ID)
	}
	return nil
}

// hash is a template's hash, in decimal as Azure shows it.
func hash(document behaviour.Object) string {
	text, err := json.Marshal(document)
	if err != nil {
		panic("a template that was JSON is not: " + err.Error())
	}
	h := fnv.New64a()
	_, _ = h.Write(text) // never fails
	return strconv.FormatUint(h.Sum64(), 10)
}

// shownParameters are all parameters with their types, but without the values of secret parameters.
func shownParameters(t *template.Template) behaviour.Object {
	shown := behaviour.Object{}
	for name, declaration := range t.Declared() {
		d, _ := declaration.(behaviour.Object)
		kind := behaviour.Text(d, "type")
		entry := behaviour.Object{"type": types.Name(kind)}
		if !types.Secure(kind) {
			entry["value"] = t.Parameters[name]
		}
		shown[camelCase(name)] = entry
	}
	return shown
}

// deployedProviders are the namespaces and types that a template deploys, and where.
func deployedProviders(t *template.Template) []any {
	order, types := []string{}, map[string][]string{}
	places := map[string][]any{}
	for _, r := range t.Resources {
		full := r.ID.Type()
		namespace := r.ID.Namespace()
		name := full[len(namespace)+1:]
		if !slices.Contains(order, namespace) {
			order = append(order, namespace)
		}
		if !slices.Contains(types[namespace], name) {
			types[namespace] = append(types[namespace], name)
		}
		var place any
		if r.Location != "" {
			place = regionName(r.Location)
		}
		if !slices.Contains(places[full], place) {
			places[full] = append(places[full], place)
		}
	}
	shown := []any{}
	for _, namespace := range order {
		list := []any{}
		for _, name := range types[namespace] {
			list = append(list, behaviour.Object{"resourceType": name, "locations": places[namespace+"/"+name]})
		}
		shown = append(shown, behaviour.Object{"namespace": namespace, "resourceTypes": list})
	}
	return shown
}

// regionName is the name of a region that a request names by its name, in any case, or by the name that people read.
func regionName(location string) string {
	return strings.ToLower(strings.ReplaceAll(location, " ", ""))
}

func shownDependencies(t *template.Template) []any {
	own := map[string]bool{}
	for _, r := range t.Resources {
		own[r.ID.Key()] = true
	}
	shown := []any{}
	for _, r := range t.Resources {
		on := []any{}
		for _, id := range r.DependsOn {
			if own[id.Key()] {
				on = append(on, target(id))
			}
		}
		if len(on) > 0 {
			entry := target(r.ID)
			entry["dependsOn"] = on
			shown = append(shown, entry)
		}
	}
	return shown
}

// target is a resource as deployments and their operations name it.
func target(id azure.ID) behaviour.Object {
	names := []string{}
	for at := id; strings.Count(at.Type(), "/") > 0; at = at.Parent() {
		names = append([]string{at.Name()}, names...)
		if strings.Count(at.Type(), "/") == 1 {
			break
		}
	}
	return behaviour.Object{"id": string(id), "resourceType": id.Type(), "resourceName": strings.Join(names, "/")}
}

// validate checks a deployment without making it. Providers are asked, too: what they would refuse is tried, and taken back.
func validate(c *behaviour.Call) (any, error) {
	call, t, made, err := checked(c)
	if err != nil {
		return nil, err
	}
	if err := preflight(c, call, t); err != nil {
		return nil, err
	}
	properties := behaviour.Sub(call.Doc, "properties")
	properties["provisioningState"], properties["validatedResources"] = "Succeeded", behaviour.Refs(made)
	valid := behaviour.Object{"id": string(c.ID), "name": c.ID.Name(), "type": deploymentType, "properties": properties}
	if location := behaviour.Text(call.Doc, "location"); location != "" {
		valid["location"] = regionName(location)
	}
	return valid, nil
}

// early are the codes of what providers find wrong before a deployment begins: names and locations. What refers to other resources, and
// what is in them, shows in the deployment itself.
var early = []string{
	"AccountNameInvalid", "InvalidResourceName", "InvalidResourceLocation", "LocationRequired", "LocationNotAvailableForResourceType",
	"VaultNameNotValid",
}

// preflight refuses a deployment with new resources that their providers refuse at once.
func preflight(c, call *behaviour.Call, t *template.Template) error {
	p := newPrediction(true)
	tried := *call
	tried.ID, tried.Verb = c.ID, behaviour.Create
	tried.Try(func() { p.deploy(&tried, stored(call.Doc), t) })
	if p.incomplete != nil {
		return p.incomplete
	}
	p.refused = slices.DeleteFunc(p.refused, func(e *behaviour.Error) bool { return !slices.Contains(early, e.Code) })
	if fault := p.refusal(c.ID); fault != nil {
		return fault
	}
	return nil
}

// checked does what a PUT of a deployment checks, and binds its template. It returns the resources that the deployment makes, too.
func checked(c *behaviour.Call) (*behaviour.Call, *template.Template, []azure.ID, error) {
	call := *c
	call.Doc, call.Old = behaviour.Clone(c.Body), nil
	if call.Doc == nil {
		call.Doc = behaviour.Object{}
	}
	made, err := fillDeployment(&call)
	if err != nil {
		return nil, nil, nil, err
	}
	t, err := bind(&call, stored(call.Doc))
	return &call, t, made, err
}

// stored is what a deployment deploys, as its document has it.
func stored(doc behaviour.Object) *source {
	return &source{document: behaviour.Sub(doc, templateField), given: behaviour.Sub(doc, parametersField),
		link: behaviour.Sub(doc, "properties.templateLink"), linked: behaviour.Sub(doc, linkedField)}
}

// deploy makes the resources of a deployment, one after the other. A refused resource makes the deployment fail. Resources
// that depend on it are not begun, and all others are made. While the operation of a resource runs, the resources that
// depend on it wait, and the deployment runs, too.
func deploy(c *behaviour.Call) error {
	s := stored(c.Doc)
	t, err := bind(c, s)
	if err != nil {
		return err
	}
	var made []azure.ID
	var faults []error
	without, steps := map[string]bool{}, behaviour.Array(c.Doc, operationsField)
	p := progressOf(c)
	for _, r := range t.Resources {
		if passOn(r, without) || passOn(r, p.waiting) {
			continue
		}
		if !p.isMade(r.ID) {
			_, there := c.Get(r.ID)
			fault := p.proceed(c, s, t, r)
			if p.waiting[r.ID.Key()] {
				continue
			}
			steps = append(steps, step(c, "Create", r.ID, there, fault))
			if fault != nil {
				without[r.ID.Key()] = true
				faults = append(faults, fault)
				continue
			}
		}
		if made = append(made, r.ID); r.Nested() {
			made = append(made[:len(made)-1], outputResources(c, r.ID)...)
		}
	}
	if len(p.waiting) > 0 && len(faults) == 0 {
		c.Doc[operationsField] = steps
		return p.keep(c)
	}
	delete(c.Doc, progressField)
	if len(faults) == 0 {
		removed, refused := removeOthers(c, t, made)
		steps, faults = append(steps, removed...), refused
	}
	if len(faults) > 0 {
		return failDeployment(c, faults, steps)
	}
	outputs, err := shownOutputs(t)
	if err != nil {
		return failDeployment(c, []error{err}, steps)
	}
	if outputs != nil {
		behaviour.Set(c.Doc, "properties.outputs", outputs)
	}
	behaviour.Set(c.Doc, "properties.outputResources", behaviour.Refs(made))
	c.Doc[operationsField] = append(steps, step(c, "EvaluateDeploymentOutput", "", true, nil))
	finish(c, c.Doc)
	return nil
}

// passOn adds a resource to a set if it needs one of the set, and reports whether it did.
func passOn(r *template.Resource, set map[string]bool) bool {
	needed := slices.ContainsFunc(append(slices.Clone(r.DependsOn), r.ID.Parent()), func(id azure.ID) bool { return set[id.Key()] })
	if needed {
		set[r.ID.Key()] = true
	}
	return needed
}

// outputResources are the resources that a deployment made.
func outputResources(c *behaviour.Call, id azure.ID) []azure.ID {
	doc, _ := c.Get(id)
	var made []azure.ID
	for _, r := range behaviour.Objects(doc, "properties.outputResources") {
		made = append(made, azure.ID(behaviour.Text(r, "id")))
	}
	return made
}

// removeOthers removes, in the mode Complete, what is in the group and not in the template.
func removeOthers(c *behaviour.Call, t *template.Template, made []azure.ID) (steps []any, faults []error) {
	if !completes(c.Doc) {
		return nil, nil
	}
	removed, refused, faults := removeAll(c, others(c, t, made))
	for _, id := range removed {
		steps = append(steps, step(c, "Delete", id, true, nil))
	}
	for i, id := range refused {
		steps = append(steps, step(c, "Delete", id, true, faults[i]))
	}
	return steps, faults
}

// removeAll removes resources. What others still use is tried again after these are gone. There is a fault for each that is refused.
func removeAll(c *behaviour.Call, left []azure.ID) (removed, refused []azure.ID, faults []error) {
	for progress := true; progress && len(left) > 0; left = refused {
		progress, refused, faults = false, nil, nil
		for _, id := range left {
			if fault := c.Remove(c.Caller, id); fault != nil {
				refused, faults = append(refused, id), append(faults, fault)
				continue
			}
			removed, progress = append(removed, id), true
		}
	}
	return removed, refused, faults
}

// others are the resources directly in the group of a deployment that its template does not make.
func others(c *behaviour.Call, t *template.Template, made []azure.ID) []azure.ID {
	keep := map[string]bool{}
	for _, r := range t.Resources {
		keep[r.ID.Key()] = true
	}
	for _, id := range made {
		keep[id.TopLevel().Key()] = true
	}
	var all []azure.ID
	for id := range c.In(c.ID.Parent()) {
		if !keep[id.Key()] && id.Namespace() != "Microsoft.Resources" && id.Namespace() != "Microsoft.Authorization" {
			all = append(all, id)
		}
	}
	return all
}

// finish writes how long a deployment took.
func finish(c *behaviour.Call, doc behaviour.Object) {
	begun, err := time.Parse(time.RFC3339Nano, behaviour.Text(doc, "properties.timestamp"))
	if err == nil {
		behaviour.Set(doc, "properties.duration", fmt.Sprintf("PT%sS", strconv.FormatFloat(c.Now().Sub(begun).Seconds(), 'f', -1, 64)))
	}
	behaviour.Set(doc, "properties.timestamp", behaviour.Timestamp(c.Now()))
}

func makeResource(c *behaviour.Call, s *source, t *template.Template, r *template.Resource) error {
	body, err := t.Body(r)
	if err != nil {
		return invalidTemplate(err)
	}
	if !r.Nested() {
		return c.ApplyVersion(c.Caller, r.ID, r.Version, body)
	}
	err = c.Apply(c.Caller, r.ID, s.nestedBody(body))
	if failed, ok := errors.AsType[*behaviour.Error](err); ok && failed.Keep && !failed.Later {
		return &behaviour.Error{Status: 409, Code: "ResourceDeploymentFailure", Target: string(r.ID), Details: []*behaviour.Error{failed},
			Message: "The resource write operation failed to complete successfully, because it reached terminal provisioning state " +
				"'Failed'."}
	}
	return err
}

// failDeployment is the error of a deployment that failed on the way. It is in the
// deployment's document, too.
func failDeployment(c *behaviour.Call, faults []error, steps []any) error {
	failure := &behaviour.Error{
		Status: 200, Code: "DeploymentFailed", Keep: true, Target: string(c.ID),
		Message: "At least one resource deployment operation failed. Please list deployment operations for details. Please see " +
			"https://aka.ms/arm-deployment-operations for usage details.",
	}
	for _, fault := range faults {
		inner, ok := errors.AsType[*behaviour.Error](fault)
		if !ok {
			inner = behaviour.Invalid("InvalidTemplate", "%v", fault)
		}
		failure.Details = append(failure.Details, inner)
	}
	c.Edit(c.ID, func(doc behaviour.Object) {
		behaviour.Set(doc, "properties.error", failure.Body())
		doc[operationsField] = steps
		finish(c, doc)
	})
	return failure
}

func shownOutputs(t *template.Template) (behaviour.Object, error) {
	outputs, err := t.Outputs()
	if err != nil {
		return nil, behaviour.Invalid("DeploymentOutputEvaluationFailed", "Unable to evaluate template outputs: '%v'. Please see error "+
			"details and deployment operations. Please see https://aka.ms/arm-common-errors for usage details.", err)
	}
	if outputs == nil {
		return nil, nil
	}
	shown := behaviour.Object{}
	for name, o := range outputs {
		output := behaviour.Object{"type": o.Type}
		if !o.Secure {
			output["value"] = o.Value
		}
		shown[camelCase(name)] = output
	}
	return shown, nil
}

// camelCase returns a name as the resource manager shows the names of parameters and outputs. Leading capitals become small letters. The
// last of them stays if a small letter follows, unless it is the first letter of the name.
func camelCase(name string) string {
	letters := []rune(name)
	for i, r := range letters {
		if !unicode.IsUpper(r) || i > 0 && i+1 < len(letters) && !unicode.IsUpper(letters[i+1]) {
			break
		}
		letters[i] = unicode.ToLower(r)
	}
	return string(letters)
}
