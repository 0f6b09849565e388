//go:build !linux

package content

import (
	"errors"
	"os"

	"kaz/internal/localazure/plane/octets"
)

var errLinux = errors.New("the content of file shares needs Linux")

// ReadAttribute needs Linux.
func ReadAttribute(*os.File) ([]byte, error) { return nil, errLinux }

// WriteAttribute needs Linux.
func WriteAttribute(*os.File, []byte) error { return errLinux }

// Clear needs Linux.
func Clear(*os.File, int64, int64) error { return errLinux }

// Ranges needs Linux.
func Ranges(*os.File, octets.Range) ([]octets.Range, error) { return nil, errLinux }
