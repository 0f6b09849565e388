//go:build !windows

package windows

import "errors"

// Open returns an error: this machine has no Windows.
func Open() (*System, error) { return nil, errors.New("this machine has no Windows") }
