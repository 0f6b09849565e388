//go:build !linux

package netns

import "errors"

// Dir is where namespaces with a name are.
const Dir = "/run/netns"

// Path is the path of a namespace.
func Path(name string) string { return name }

// Create makes an empty network namespace with a name.
func Create(string) error { return errors.ErrUnsupported }

// Remove takes the name from a namespace.
func Remove(string) error { return errors.ErrUnsupported }

// Do calls f in a network namespace.
func Do(string, func() error) error { return errors.ErrUnsupported }

func here() (path string, release func()) { return "", func() {} }
