package probe

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/verify/bench"
)

const (
	deploymentType = "Microsoft.Resources/deployments"
	specType       = "Microsoft.Resources/templateSpecs"
)

func deploymentProbes() []Probe {
	const area = "deployments"
	rights := append(all(deploymentType), deploymentType+"/validate/action", deploymentType+"/whatIf/action")
	return []Probe{
		{
			Name: "securestring", Area: area, Minutes: 1, Rights: rights, Run: secureString,
			Tries: "deploy a template with a parameter of the type securestring; want that no read shows it",
		},
		{
			Name: "template-spec", Area: area, Minutes: 1, Rights: all(specType, specType+"/versions"), Run: templateSpec,
			Tries: "keep 1.5 MB in the metadata of a version of a template spec, and read them",
		},
		{
			Name: "what-if-invalid", Area: area, Minutes: 1, Rights: rights, Run: whatIfInvalid,
			Tries: "ask what an invalid template would change; want that the operation fails, and not the request",
		},
		{
			Name: "template-limits", Area: area, Minutes: 1, Rights: rights, Run: templateLimits,
			Tries: "deploy templates with 257 parameters, 513 variables and 65 outputs; want InvalidTemplate",
		},
		{
			Name: "template-members", Area: area, Minutes: 1, Rights: rights, Run: templateMembers,
			Tries: "deploy a template with an unknown section, and one without resources; want InvalidRequestContent or InvalidTemplate",
		},
		{
			Name: "deep-request", Area: area, Minutes: 1, Rights: rights, Run: deepRequest,
			Tries: "send a parameter with 200 nested arrays; want 400",
		},
		{
			Name: "zone-functions", Area: area, Minutes: 1, Rights: rights, Run: zoneFunctions,
			Tries: "evaluate pickZones for a type without zones; want an empty array",
		},
		{
			Name: "what-if-times", Area: area, Minutes: 1, Rights: append(all(nsgType), rights...), Run: whatIfTimes,
			Tries: "ask what the template of a security group that exists would change; want no change",
		},
	}
}

// template is a template with sections.
func template(sections object) object {
	t := object{
		"$schema":        "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
		"contentVersion": "1.0.0.0", "resources": list{},
	}
	for name, section := range sections {
		if section == nil {
			delete(t, name)
			continue
		}
		t[name] = section
	}
	return t
}

func deployment(template, parameters object) object {
	return object{"properties": object{"mode": "Incremental", "template": template, "parameters": parameters}}
}

func value(x any) object { return object{"value": x} }

func secureString(ctx context.Context, b *bench.Bench) {
	const secret = "kaz-verify-not-a-secret"
	id := b.ID(deploymentType, "d")
	mark := b.Mark()
	b.Make(ctx, id, deployment(template(object{"parameters": object{"p": object{"type": "securestring"}}}), object{"p": value(secret)}))
	b.Get(ctx, id)
	b.List(ctx, id, deploymentType+"/operations")
	shown := false
	for _, e := range b.Since(mark) {
		shown = shown || strings.Contains(string(e.Answer), secret)
	}
	b.Agree(!shown, "answers about the deployment show the value: %t", shown)
}

func templateSpec(ctx context.Context, b *bench.Bench) {
	id := b.ID(specType, "spec")
	b.Make(ctx, id, at(b, object{}))
	const size = 3 << 19
	text := strings.Repeat("kaz ", size/4)
	version := id.Child("versions", "one")
	a := b.Try(ctx, azure.Put, version, at(b, object{"mainTemplate": template(nil), "metadata": object{"kaz": text}}))
	kept := bench.Text(b.Look(ctx, version).Body, "properties.metadata.kaz") == text
	b.Agree(!a.Failed && kept, "a version with metadata of %d bytes: %s; it is read as it was written: %t", size, a, kept)
}

func whatIfInvalid(ctx context.Context, b *bench.Bench) {
	broken := deployment(template(object{"resources": list{object{
		"type": routesType, "apiVersion": b.Versions(routesType), "name": "[parameters('absent')]", "location": b.Location,
		"properties": object{},
	}}}), object{})
	a := b.Act(ctx, b.ID(deploymentType, "d"), "whatIf", broken)
	code := cmp.Or(a.Code, bench.Text(a.Body, "error.code"))
	b.Agree(code == "InvalidTemplate" && a.Status == http.StatusAccepted, "whatIf of an invalid template: %s, and then %q", a, code)
}

func templateLimits(ctx context.Context, b *bench.Bench) {
	many := func(n int, x any) object {
		section := object{}
		for i := range n {
			section[fmt.Sprint("x", i)] = x
		}
		return section
	}
	for name, section := range map[string]object{
		"parameters": many(257, object{"type": "string", "defaultValue": "x"}),
		"variables":  many(513, "x"), "outputs": many(65, object{"type": "string", "value": "x"}),
	} {
		refusal(ctx, b, fmt.Sprintf("%d %s", len(section), name), b.ID(deploymentType, name),
			deployment(template(object{name: section}), object{}), "InvalidTemplate")
	}
}

func templateMembers(ctx context.Context, b *bench.Bench) {
	refusal(ctx, b, "template with the section nosuch", b.ID(deploymentType, "unknown"),
		deployment(template(object{"nosuch": object{}}), object{}), "InvalidRequestContent", "InvalidTemplate")
	refusal(ctx, b, "template without resources", b.ID(deploymentType, "absent"),
		deployment(template(object{"resources": nil}), object{}), "InvalidRequestContent", "InvalidTemplate")
}

func deepRequest(ctx context.Context, b *bench.Bench) {
	var deep any = list{}
	const depth = 200
	for range depth {
		deep = list{deep}
	}
	refusal(ctx, b, "parameter with 200 nested arrays", b.ID(deploymentType, "d"),
		deployment(template(object{"parameters": object{"p": object{"type": "array"}}}), object{"p": value(deep)}))
}

// output deploys a template with an output and returns its value.
func output(ctx context.Context, b *bench.Bench, name, fullType, expression string) any {
	doc := b.Make(ctx, b.ID(deploymentType, name), deployment(template(object{
		"outputs": object{"o": object{"type": fullType, "value": expression}},
	}), object{}))
	return bench.At(doc, "properties.outputs.o.value")
}

func zoneFunctions(ctx context.Context, b *bench.Bench) {
	got := output(ctx, b, "pick", "array", "[pickZones('Microsoft.Network', 'networkSecurityGroups', '"+b.Location+"')]")
	zones, ok := got.(list)
	b.Agree(ok && len(zones) == 0, "pickZones of a type without zones: %v", got)
}

func whatIfTimes(ctx context.Context, b *bench.Bench) {
	id := b.ID(nsgType, "nsg")
	b.Make(ctx, id, at(b, object{"securityRules": list{}}))
	resource := at(b, object{"securityRules": list{}})
	resource["type"], resource["apiVersion"], resource["name"] = nsgType, b.Versions(nsgType), id.Name()
	a := b.Act(ctx, b.ID(deploymentType, "d"), "whatIf", deployment(template(object{"resources": list{resource}}), object{}))
	if a.Failed {
		b.Fail(fmt.Errorf("whatIf: %s", a))
	}
	for i := range bench.Count(a.Body, "properties.changes") {
		at := fmt.Sprintf("properties.changes.%d.", i)
		if id.Equal(azure.ID(bench.Text(a.Body, at+"resourceId"))) {
			change := bench.Text(a.Body, at+"changeType")
			b.Agree(change == "NoChange", "whatIf of a security group as it is: %s", change)
		}
	}
}
