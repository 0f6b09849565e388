package emit

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/graph"
	"kaz/internal/cluster/naming"
	"kaz/internal/cluster/units"
)

// Portal returns the definition of the user interface with which Azure's portal deploys the template. The portal takes only
// the subscription and the resource group of the definition. It shows what the cluster is, and asks for the secrets of a
// first deployment.
func Portal(l graph.Linked, n naming.Names, d definition.Definition) map[string]any {
	outputs, files := object{}, []any{}
	const step, seed, wanted = "secrets", units.SeedSecrets, "[steps('secrets').seedSecrets]"
	files = append(files,
		object{"name": "about", "type": "Microsoft.Common.TextBlock", "visible": true, "options": object{"text": "The first deployment " +
			"needs the secrets of the cluster, as files. Later ones do not, and do not change them."}},
		object{"name": seed, "type": "Microsoft.Common.CheckBox", "label": "This is the first deployment: write the secrets",
			"toolTip": "Leave it off if the cluster exists: its secrets stay as they are."})
	for _, name := range used(l, Options{}) {
		outputs[name] = fmt.Sprintf("[if(steps('%s').%s, steps('%s').%s, '')]", step, seed, step, name)
		if name == seed {
			outputs[name] = wanted
			continue
		}
		files = append(files, object{"name": name, "type": "Microsoft.Common.FileUpload", "visible": wanted,
			"label": "Secret " + units.Secrets()[name], "toolTip": "The file with the secret " + units.Secrets()[name] + ".",
			"constraints": object{"required": wanted, "accept": ".pem,.txt"},
			"options":     object{"multiple": false, "uploadMode": "file", "openMode": "text", "encoding": "UTF-8"}})
	}
	group, a := n.Group(), d.Cluster.Spec.Azure
	only := func(condition, what string) object {
		return object{"validations": []any{object{"isValid": "[" + condition + "]", "message": "The cluster is for " + what + "."}}}
	}
	return object{
		"$schema": "https://schema.management.azure.com/schemas/0.1.2-preview/CreateUIDefinition.MultiVm.json#",
		"handler": "Microsoft.Azure.CreateUIDef", "version": "0.1.2-preview",
		"parameters": object{
			"config": object{"isWizard": false, "basics": object{
				"description": portalText(d),
				"subscription": object{"constraints": only("equals(toLower(subscription().subscriptionId), "+
					quoted(strings.ToLower(group.Subscription()))+")", "subscription "+group.Subscription())},
				"resourceGroup": object{"allowExisting": true, "constraints": only("equals(toLower(resourceGroup().name), "+
					quoted(strings.ToLower(group.Group()))+")", "resource group "+group.Group())},
				"location": object{"allowedValues": []any{a.Location}, "visible": true, "toolTip": "The region of the cluster."},
			}},
			"basics": []any{},
			"steps": []any{object{"name": step, "label": "Secrets", "elements": files,
				"subLabel":   object{"preValidation": "Give the secrets of a first deployment", "postValidation": "Done"},
				"bladeTitle": "Secrets"}},
			"outputs":       outputs,
			"resourceTypes": portalTypes(l),
		},
	}
}

// portalText says what the template deploys.
func portalText(d definition.Definition) string {
	s := d.Cluster.Spec
	var pools []string
	for _, p := range d.Pools {
		pools = append(pools, fmt.Sprintf("%s (%d × %s)", p.Metadata.Name, p.Spec.Replicas, p.Spec.VMSize))
	}
	return fmt.Sprintf("Kubernetes cluster **%s**: version %s in %s, %d × %s for the control plane, node pools: %s.",
		d.Cluster.Metadata.Name, s.Kubernetes.Version, s.Azure.Location, s.ControlPlane.Replicas, s.ControlPlane.VMSize,
		strings.Join(append(pools, "none")[:max(1, len(pools))], ", "))
}

// portalTypes are the types of the template, by which the portal offers only regions that have them all.
func portalTypes(l graph.Linked) []any {
	var types []string
	for _, u := range l.Units {
		for _, r := range u.Resources {
			if strings.Count(r.Type, "/") == 1 && !strings.HasPrefix(r.Type, "Microsoft.Authorization/") {
				types = append(types, r.Type)
			}
		}
	}
	slices.Sort(types)
	all := []any{}
	for _, t := range slices.Compact(types) {
		all = append(all, t)
	}
	return all
}
