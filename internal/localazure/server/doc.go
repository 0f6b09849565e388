// Package server serves a local Azure: Azure Resource Manager, the login, managed identities, instance metadata and
// container registries, over HTTPS, HTTP and a proxy. Layer L4: it composes the emulator and its planes.
package server
