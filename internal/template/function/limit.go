package function

import (
	"fmt"
	"strings"
)

// Limits of what a template may compute. Azure has limits of its own; these keep a
// template from using up the memory and the time of the process.
const (
	MostSteps = 100_000
	MostSize  = 16 << 20
)

// ErrTooMuch is the error of a template beyond the limits.
var ErrTooMuch = fmt.Errorf("the template computes too much: more than %d calls, or %d characters", MostSteps, MostSize)

// SizeOf is about how much text a value is.
func SizeOf(value any) int {
	switch v := value.(type) {
	case string:
		return len(v)
	case map[string]any:
		size := 2
		for key, x := range v {
			size += len(key) + 1 + SizeOf(x)
		}
		return size
	case []any:
		size := 2
		for _, x := range v {
			size += 1 + SizeOf(x)
		}
		return size
	}
	return 1
}

// KeyOf is the object's own spelling of a key, "" when it has none.
func KeyOf(o map[string]any, name string) string {
	if _, ok := o[name]; ok {
		return name
	}
	for key := range o {
		if strings.EqualFold(key, name) {
			return key
		}
	}
	return ""
}
