package autoscale

import "context"

// Refresh reads what is due, once.
func (p *Provider) Refresh(ctx context.Context) { p.refresh(ctx) }
