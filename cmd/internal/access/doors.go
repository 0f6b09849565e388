package access

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"kaz/internal/azure"
	"kaz/internal/credential"
	"kaz/internal/reconcile"
)

// Doors lead to Azure: one, or two where the network belongs to another tenant, in whose
// subscription everything goes through a door of its own.
type Doors struct {
	reconcile.Azure // to everything but that subscription

	network      reconcile.Azure // nil for one door
	subscription string

	who   credential.Credentials
	scope string
}

// to is the door for a resource.
func (d *Doors) to(id azure.ID) reconcile.Azure {
	if d.network != nil && strings.EqualFold(id.Subscription(), d.subscription) {
		return d.network
	}
	return d.Azure
}

// Get implements [azure.Reader].
func (d *Doors) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return d.to(id).Get(ctx, id)
}

// List implements [azure.Reader].
func (d *Doors) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return d.to(q.Scope).List(ctx, q)
}

// Put implements [azure.Writer].
func (d *Doors) Put(ctx context.Context, w azure.Write) (azure.Document, error) {
	return d.to(w.ID).Put(ctx, w)
}

// Patch implements [azure.Writer].
func (d *Doors) Patch(ctx context.Context, w azure.Write) (azure.Document, error) {
	return d.to(w.ID).Patch(ctx, w)
}

// Delete implements [azure.Writer].
func (d *Doors) Delete(ctx context.Context, id azure.ID) error { return d.to(id).Delete(ctx, id) }

// Post implements [azure.Writer].
func (d *Doors) Post(ctx context.Context, id azure.ID, action string, body azure.Document) (azure.Document, error) {
	return d.to(id).Post(ctx, id, action, body)
}

// Fresh reads past the caches.
func (d *Doors) Fresh() azure.Reader { return fresh{d} }

type fresh struct{ doors *Doors }

func (f fresh) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return f.doors.to(id).Fresh().Get(ctx, id)
}

func (f fresh) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return f.doors.to(q.Scope).Fresh().List(ctx, q)
}

// SignIn gets the tokens that all further requests need, so that a wrong credential is
// found before anything is attempted. The error says which identity got none, and why.
func (d *Doors) SignIn(ctx context.Context) error {
	for _, c := range []azcore.TokenCredential{d.who.Compute, d.who.Auxiliary} {
		if c == nil {
			continue
		}
		if _, err := c.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{d.scope}}); err != nil {
			return err
		}
	}
	return nil
}
