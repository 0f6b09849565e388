// Package cloudconfig reads the cloud configuration of a cluster, usually called azure.json. Layer
// L2.
//
// It accepts the files of existing clusters: JSON or YAML, keys in any case, with every key that past
// versions of the Azure components read. One table (keys.go) has each key's type, default, allowed
// values and effect. Reading, defaults, checks and docs/reference/azure-json.md derive from it.
//
// [Read] is what a program calls at its start. It takes the file, the Secret and the environment, and
// returns a complete Config or every problem at once. [Parse], [Merge] and [Load] are its parts. The
// package neither reads the environment nor talks to Azure. The environment is passed as a function,
// and documents that describe a cloud ([EnvironmentFromMetadata], [Environment.WithFile]) as bytes.
package cloudconfig
