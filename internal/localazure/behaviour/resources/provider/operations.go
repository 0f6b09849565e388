package provider

import (
	"strings"
	"unicode"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// verbs are the operations on resources of a type, as role definitions name them.
var verbs = []struct{ name, text string }{{"read", "Get"}, {"write", "Create or update"}, {"delete", "Delete"}}

// spaced returns a name in camel case as words: "storageAccounts" as "Storage Accounts".
func spaced(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i == 0 {
			r = unicode.ToUpper(r)
		} else if unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// typesOf returns the types of a provider, and the namespace in Azure's spelling, "" for an unknown provider.
func typesOf(namespace string) (types []listed, spelled string) {
	for _, t := range append(listedTypes(), documentTypes()...) {
		if strings.EqualFold(t.namespace, namespace) && !strings.EqualFold(t.name, "operations") {
			types, spelled = append(types, t), t.namespace
		}
	}
	return types, spelled
}

// listOperations lists what can be done with the resources of a provider.
func listOperations(c *behaviour.Call) (behaviour.Reply, error) {
	types, namespace := typesOf(c.Param["namespace"])
	if namespace == "" {
		return behaviour.Reply{},
			behaviour.UnknownNamespace(c.Param["namespace"])
	}
	operations := []any{}
	for _, t := range types {
		for _, v := range verbs {
			resource := spaced(t.name[strings.LastIndexByte(t.name, '/')+1:])
			operations = append(operations, behaviour.Object{"name": namespace + "/" + t.name + "/" + v.name, "isDataAction": false,
				"origin": "user,system", "display": behaviour.Object{
					"provider": strings.ReplaceAll(namespace, ".", " "), "resource": resource,
					"operation": v.text + " " + resource, "description": v.text + " " + resource}})
		}
	}
	return answer(behaviour.Object{"value": operations})
}

// providerOperations describes what can be done with the resources of a provider, as the catalogue for role definitions has it.
func providerOperations(namespace string) behaviour.Object {
	types, namespace := typesOf(namespace)
	if namespace == "" {
		return nil
	}
	kinds := []any{}
	for _, t := range types {
		operations := []any{}
		display := spaced(t.name[strings.LastIndexByte(t.name, '/')+1:])
		for _, v := range verbs {
			text := v.text + " " + display
			operations = append(operations, behaviour.Object{"name": namespace + "/" + t.name + "/" + v.name, "displayName": text,
				"description": text, "isDataAction": false})
		}
		kinds = append(kinds, behaviour.Object{"name": t.name, "displayName": display, "operations": operations})
	}
	const kind = "Microsoft.Authorization/providerOperations"
	return behaviour.Object{"id": string(azure.ID("").Resource(kind, namespace)), "name": namespace, "type": kind,
		"displayName": strings.ReplaceAll(namespace, ".", " "), "operations": []any{}, "resourceTypes": kinds}
}

func listProviderOperations(*behaviour.Call) (behaviour.Reply, error) {
	items := []any{}
	for _, namespace := range namespaces() {
		items = append(items, providerOperations(namespace))
	}
	return answer(behaviour.Object{"value": items})
}

func getProviderOperations(c *behaviour.Call) (behaviour.Reply, error) {
	doc := providerOperations(c.Param["namespace"])
	if doc == nil {
		return behaviour.Reply{}, behaviour.Gateway(404, "ProviderNotFound", "Provider '%s' not found.", c.Param["namespace"])
	}
	return answer(doc)
}
