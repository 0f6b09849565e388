package autoscale

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan/nodegroup"
)

// catalogue knows the sizes of machines and the use of quotas in a region.
type catalogue struct {
	azure        azure.Reader
	subscription azure.ID
	location     string

	known guarded[offer]
}

// offer is what a region offers, as it was read last.
type offer struct {
	sizes      map[string]nodegroup.Size
	sizesRead  time.Time
	usages     nodegroup.Usages // nil: to be read
	usagesRead time.Time
}

// How long what was read is good.
const (
	sizesTTL  = 12 * time.Hour
	usagesTTL = 5 * time.Minute
)

func newCatalogue(from azure.Reader, subscription, location string) *catalogue {
	return &catalogue{azure: from, subscription: azure.SubscriptionID(subscription), location: location}
}

// now returns what is known. Its maps are replaced, never changed.
func (o *offer) now() offer { return *o }

// size returns a size that was read.
func (c *catalogue) size(name string) (nodegroup.Size, bool) {
	s, ok := ask(&c.known, (*offer).now).sizes[strings.ToLower(name)]
	return s, ok
}

// readSizes reads the sizes if they are too old.
func (c *catalogue) readSizes(ctx context.Context) error {
	if read := ask(&c.known, (*offer).now).sizesRead; !read.IsZero() && time.Since(read) < sizesTTL {
		return nil
	}
	docs, err := c.azure.List(ctx, azure.Query{
		Scope: c.subscription, Type: "Microsoft.Compute/skus", Filter: fmt.Sprintf("location eq '%s'", c.location),
	})
	if err != nil {
		return err
	}
	sizes := map[string]nodegroup.Size{}
	for _, doc := range docs {
		size, ok, err := nodegroup.ReadSize(doc)
		if err != nil {
			return err
		}
		if ok {
			sizes[strings.ToLower(size.Name)] = size
		}
	}
	c.known.change(func(o *offer) { o.sizes, o.sizesRead = sizes, time.Now() })
	return nil
}

// take takes up to n machines off the quotas. It returns how many the subscription can have, and why not more.
func (c *catalogue) take(ctx context.Context, g nodegroup.Group, n int) (int, *nodegroup.Failure) {
	fits, refused := c.room(ctx, g, n)
	if size, known := c.size(g.Size()); known {
		c.use(size, g.Spot, fits)
	}
	return fits, refused
}

// room returns how many of n machines of a size the subscription can have, and why not more. What cannot be read is
// left to Azure to refuse.
func (c *catalogue) room(ctx context.Context, g nodegroup.Group, n int) (int, *nodegroup.Failure) {
	size, known := c.size(g.Size())
	if !known {
		return n, nil
	}
	if refused := size.Offered(g.Zones()); refused != nil {
		return 0, refused
	}
	usages, err := c.readUsages(ctx)
	if err != nil {
		return n, nil
	}
	return usages.Room(size, g.Spot, n)
}

// readUsages reads the usages if they are too old.
func (c *catalogue) readUsages(ctx context.Context) (nodegroup.Usages, error) {
	if now := ask(&c.known, (*offer).now); now.usages != nil && time.Since(now.usagesRead) < usagesTTL {
		return now.usages, nil
	}
	docs, err := c.azure.List(ctx, azure.Query{
		Scope: azure.ID(string(c.subscription) + "/providers/Microsoft.Compute/locations/" + c.location),
		Type:  "Microsoft.Compute/locations/usages",
	})
	if err != nil {
		return nil, err
	}
	usages, err := nodegroup.ReadUsages(docs)
	if err != nil {
		return nil, err
	}
	c.known.change(func(o *offer) { o.usages, o.usagesRead = usages, time.Now() })
	return usages, nil
}

// use counts machines that are asked for, so that the next increase does not count on the same cores.
func (c *catalogue) use(size nodegroup.Size, spot bool, n int) {
	c.known.change(func(o *offer) { o.usages = o.usages.With(size, spot, n) })
}

// forgetUsages has the usages read again before the next increase.
func (c *catalogue) forgetUsages() {
	c.known.change(func(o *offer) { o.usages = nil })
}
