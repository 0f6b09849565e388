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

// Clients is one ARM client, or two if the network is in another tenant. Requests to the network's
// subscription then use the second client.
type Clients struct {
	reconcile.Azure // for all other subscriptions

	network      reconcile.Azure // nil if there is only one client
	subscription string

	identity credential.Credentials
	scope    string
}

// to returns the ARM client for a resource.
func (c *Clients) to(id azure.ID) reconcile.Azure {
	if c.network != nil && strings.EqualFold(id.Subscription(), c.subscription) {
		return c.network
	}
	return c.Azure
}

// Get implements [azure.Reader].
func (c *Clients) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return c.to(id).Get(ctx, id)
}

// List implements [azure.Reader].
func (c *Clients) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return c.to(q.Scope).List(ctx, q)
}

// Begin implements [azure.Writer].
func (c *Clients) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	return c.to(r.ID).Begin(ctx, r)
}

// Fresh returns a reader that bypasses the caches.
func (c *Clients) Fresh() azure.Reader { return fresh{clients: c} }

type fresh struct {
	clients  *Clients
	priority azure.Priority
}

// At returns a reader that reads with a priority.
func (f fresh) At(p azure.Priority) azure.Reader { return fresh{f.clients, p} }

func (f fresh) to(id azure.ID) azure.Reader { return azure.At(f.clients.to(id).Fresh(), f.priority) }

func (f fresh) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	return f.to(id).Get(ctx, id)
}

func (f fresh) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return f.to(q.Scope).List(ctx, q)
}

// SignIn gets the tokens that all further requests need, so that a wrong credential fails early. The
// error names the identity and the reason.
func (c *Clients) SignIn(ctx context.Context) error {
	for _, credential := range []azcore.TokenCredential{c.identity.Compute, c.identity.Auxiliary} {
		if credential == nil {
			continue
		}
		if _, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{c.scope}}); err != nil {
			return err
		}
	}
	return nil
}
