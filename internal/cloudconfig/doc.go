// Package cloudconfig reads the cloud configuration of a cluster, the file
// that everybody calls azure.json. Layer L2.
//
// The file is taken as users wrote it: JSON or YAML, keys in any case, with
// everything that past versions of the Azure components read. One table
// (keys.go) says for each key what it holds, what it defaults to, what it may
// be and whether it still has an effect; reading, defaults, checks and
// docs/reference/azure-json.md all come from it.
//
// [Read] is what a program calls at start: file, Secret and environment in,
// and either a complete Config or every problem at once. [Parse], [Merge] and
// [Load] are its parts. Nothing here reads the environment or talks to Azure:
// the environment is handed in as a function, and documents that describe a
// cloud ([EnvironmentFromMetadata], [Environment.WithFile]) as bytes.
package cloudconfig
