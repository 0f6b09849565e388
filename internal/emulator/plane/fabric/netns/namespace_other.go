//go:build !linux

package netns

import (
	"errors"
	"syscall"
)

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

// Mark is the packet mark with which a connection was accepted.
func Mark(syscall.Conn) uint32 { return 0 }

// WithMark makes a dialer's packets carry a mark.
func WithMark(uint32) func(network, address string, c syscall.RawConn) error { return nil }
