package behaviour

import (
	"strings"

	"kaz/internal/azure"
)

// Holder finds the resource with a name that may exist only once in all of Azure. It
// ignores the resource of the call.
func (c *Call) Holder(fullType, name string) (azure.ID, bool) {
	for id := range Everywhere(c, fullType) {
		if strings.EqualFold(id.Name(), name) && !id.Equal(c.ID) {
			return id, true
		}
	}
	return "", false
}
