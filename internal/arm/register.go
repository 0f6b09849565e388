package arm

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/pause"
)

// unregistered is Azure's answer to the first use of a provider in a subscription.
const unregistered = "MissingSubscriptionRegistration"

// registrations makes callers that need the same provider share one registration.
type registrations struct {
	mu      sync.Mutex
	running map[azure.ID]chan struct{}
}

// register registers the provider that c needs in its subscription, as Azure's own
// clients do, and waits until it is.
func (d *Client) register(ctx context.Context, c call) error {
	provider := azure.SubscriptionID(c.id.Subscription()) + azure.ID("/providers/"+c.id.Namespace())
	for {
		done, mine := d.registering.begin(provider)
		if mine {
			defer d.registering.end(provider, done)
			return d.registerProvider(ctx, provider)
		}
		select {
		case <-done:
			return nil // the caller's second request tells whether it worked
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *registrations) begin(provider azure.ID) (done chan struct{}, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if running, ok := r.running[provider]; ok {
		return running, false
	}
	if r.running == nil {
		r.running = map[azure.ID]chan struct{}{}
	}
	done = make(chan struct{})
	r.running[provider] = done
	return done, true
}

func (r *registrations) end(provider azure.ID, done chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, provider)
	close(done)
}

func (d *Client) registerProvider(ctx context.Context, provider azure.ID) error {
	c, err := d.build.resourceCall(http.MethodPost, provider, "register")
	if err != nil {
		return err
	}
	if _, failure := d.send(ctx, c); failure != nil {
		return failure
	}
	d.log.Info("registered a resource provider", "id", string(provider))
	const longest = 10 * time.Minute
	for start := time.Now(); time.Since(start) < longest; {
		doc, err := d.Get(ctx, provider)
		if err != nil {
			return err
		}
		var state struct {
			RegistrationState string `json:"registrationState"`
		}
		if err := json.Unmarshal(doc, &state); err != nil {
			return fmt.Errorf("registration of %s: %w", provider, err)
		}
		if state.RegistrationState == "Registered" {
			return nil
		}
		if err := pause.For(ctx, 5*time.Second); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s is not registered after %s", provider, longest)
}
