package autoscale

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/plan/nodegroup"
)

// catalogue knows the sizes of machines and the use of quotas in a region.
type catalogue struct {
	azure        azure.Reader
	subscription azure.ID
	location     string

	mu         sync.Mutex // guards what follows; not held while waiting
	sizes      map[string]nodegroup.Size
	sizesRead  time.Time
	usages     nodegroup.Usages
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

// size returns a size that was read.
func (c *catalogue) size(name string) (nodegroup.Size, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sizes[strings.ToLower(name)]
	return s, ok
}

// readSizes reads the sizes if they are too old.
func (c *catalogue) readSizes(ctx context.Context) error {
	c.mu.Lock()
	good := !c.sizesRead.IsZero() && time.Since(c.sizesRead) < sizesTTL
	c.mu.Unlock()
	if good {
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
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sizes, c.sizesRead = sizes, time.Now()
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
	c.mu.Lock()
	usages, age := c.usages, time.Since(c.usagesRead)
	c.mu.Unlock()
	if usages != nil && age < usagesTTL {
		return usages, nil
	}
	docs, err := c.azure.List(ctx, azure.Query{
		Scope: azure.ID(string(c.subscription) + "/providers/Microsoft.Compute/locations/" + c.location),
		Type:  "Microsoft.Compute/locations/usages",
	})
	if err != nil {
		return nil, err
	}
	if usages, err = nodegroup.ReadUsages(docs); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usages, c.usagesRead = usages, time.Now()
	return usages, nil
}

// use counts machines that are asked for, so that the next increase does not count on the same cores.
func (c *catalogue) use(size nodegroup.Size, spot bool, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usages = c.usages.With(size, spot, n)
}

// forgetUsages has the usages read again before the next increase.
func (c *catalogue) forgetUsages() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usages = nil
}
