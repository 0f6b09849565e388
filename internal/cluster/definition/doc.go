// Package definition has the input of kaz cluster: what a cluster definition may say, how its YAML is read, and what is wrong
// with it.
//
// A definition is one or more YAML files with documents of four kinds: one Cluster, and any number of NodePools, Extensions
// and TemplatePatches. [Load] reads them, joins their layers, checks them and fills in the defaults. It reports all mistakes
// together. Each mistake has its file, line, path and value, and what is allowed. Layer L1: pure.
//
// The Go types in types.go say which fields exist. The table of package fields says everything else about a field. It has the
// meaning of the field, its default, the allowed values, and what a change of it does to a cluster. The JSON Schema, the
// reference page and kaz cluster explain are made from the types and the table.
package definition
