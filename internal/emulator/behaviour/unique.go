package behaviour

import (
	"strings"

	"kaz/internal/azure"
)

// Holder is the resource that has a name which may exist only once in all of Azure,
// and whether there is one besides the call's own.
func (c *Call) Holder(fullType, name string) (azure.ID, bool) {
	for id := range Everywhere(c, fullType) {
		if strings.EqualFold(id.Name(), name) && !id.Equal(c.ID) {
			return id, true
		}
	}
	return "", false
}
