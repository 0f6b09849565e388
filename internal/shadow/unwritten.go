package shadow

import (
	"context"

	"kaz/internal/azure"
)

// Unwritten is an Azure that is only read: it refuses every write.
type Unwritten struct{ azure.Reader }

// Fresh returns the reader.
func (u Unwritten) Fresh() azure.Reader { return u.Reader }

// Begin implements [azure.Writer].
func (Unwritten) Begin(_ context.Context, r azure.Request) (*azure.Operation, error) {
	return nil, &azure.Error{Kind: azure.Denied, Op: r.Op(), ID: r.ID, Message: "nothing is written beside other controllers"}
}
