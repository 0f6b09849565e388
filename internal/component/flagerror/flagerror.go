// Package flagerror words errors about flags: the flag, the value and what is allowed. Layer L4.
package flagerror

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Explain words the error of a flag with a wrong value. It keeps other errors.
func Explain(_ *cobra.Command, err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	flag := invalid.GetFlag()
	want, known := map[string]string{
		"int": "a whole number", "int32": "a whole number", "int64": "a whole number", "intSlice": "whole numbers, separated by commas",
		"uint": "a whole number that is not negative", "uint16": "a whole number from 0 to 65535",
		"uint32": "a whole number that is not negative", "uint64": "a whole number that is not negative",
		"float32": "a number such as 0.5", "float64": "a number such as 0.5", "bool": "true or false",
		"duration": "a duration such as 30s, 5m or 1h", "ip": "an IP address", "stringToString": "KEY=VALUE, separated by commas",
		"version": "no value, or raw for all of it",
	}[flag.Value.Type()]
	if !known {
		return fmt.Errorf("--%s %q: %w", flag.Name, invalid.GetValue(), errors.Unwrap(invalid))
	}
	return fmt.Errorf("--%s %q: want %s", flag.Name, invalid.GetValue(), want)
}
