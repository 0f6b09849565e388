//go:build !linux

package netns

import (
	"errors"
	"syscall"
)

// Dir is the directory of named namespaces.
const Dir = "/run/netns"

// Path returns the path of a namespace.
func Path(name string) string { return name }

// Create creates an empty network namespace with a name.
func Create(string) error { return errors.ErrUnsupported }

// Remove removes the name of a namespace.
func Remove(string) error { return errors.ErrUnsupported }

// Identity distinguishes a namespace from earlier namespaces with its name.
func Identity(string) (string, error) { return "", errors.ErrUnsupported }

// Do calls f in a network namespace.
func Do(string, func() error) error { return errors.ErrUnsupported }

func here() (path string, release func()) { return "", func() {} }

// Mark returns the packet mark with which a connection was accepted.
func Mark(syscall.Conn) uint32 { return 0 }

// WithMark sets the mark of a dialer's packets.
func WithMark(uint32) func(network, address string, c syscall.RawConn) error { return nil }
