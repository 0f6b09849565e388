package function

// NestedDeeper reports whether a value is nested deeper than a depth.
func NestedDeeper(value any, depth int) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, x := range v {
			if depth == 0 || NestedDeeper(x, depth-1) {
				return true
			}
		}
	case []any:
		for _, x := range v {
			if depth == 0 || NestedDeeper(x, depth-1) {
				return true
			}
		}
	}
	return false
}
