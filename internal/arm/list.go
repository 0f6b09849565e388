package arm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kaz/internal/azure"
	"kaz/internal/pause"
)

// page is one answer to a list.
type page struct {
	Value    []azure.Document `json:"value"`
	NextLink string           `json:"nextLink"`
}

// parsePage reads an answer to a list. Lists of images in the marketplace are arrays, without an object around them.
func parsePage(text []byte) (p page, err error) {
	if isArray(text) {
		return p, json.Unmarshal(text, &p.Value)
	}
	return p, json.Unmarshal(text, &p)
}

// List reads all pages of a list. A list in a resource group or under a parent
// that does not exist is an error of kind NotFound.
func (d *Client) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	return reader{client: d}.List(ctx, q)
}

// List implements [azure.Reader].
func (r reader) List(ctx context.Context, q azure.Query) ([]azure.Document, error) {
	d := r.client
	c, err := d.build.listCall(q)
	if err != nil {
		return nil, invalid("LIST "+q.Type, q.Scope, err)
	}
	c.subject.Priority = r.priority
	start := time.Now()
	found, err := confirmed(ctx, d, c, d.pages, func(found []azure.Document, err error) bool {
		return azure.IsNotFound(err) || err == nil && len(found) == 0
	})
	d.metrics.known.Finished(c.shown(), err, time.Since(start))
	return found, err
}

func (d *Client) pages(ctx context.Context, c call) ([]azure.Document, error) {
	var found []azure.Document
	patience := c.patience
	for seen := map[string]bool{}; ; {
		text, err := d.read(ctx, c)
		if wait, ok := throttledFor(err); ok && wait <= patience && pause.For(ctx, wait) == nil {
			patience -= wait
			continue
		}
		if err != nil {
			return nil, err
		}
		p, err := parsePage(text)
		if err != nil {
			return nil, &azure.Error{Kind: azure.Internal, Op: c.op, ID: c.id,
				Cause: fmt.Errorf("a page of the list cannot be read: %w", err)}
		}
		found = append(found, p.Value...)
		if p.NextLink == "" {
			return found, nil
		}
		next, err := d.build.trusted(p.NextLink)
		if err == nil && seen[next.String()] {
			err = fmt.Errorf("the list has no end: a page names one that was read before as its next")
		}
		if err != nil {
			return nil, &azure.Error{Kind: azure.Internal, Op: c.op, ID: c.id, Cause: err}
		}
		seen[next.String()] = true
		c = d.follow(c, next, "list")
		c.document = true
	}
}

// throttledFor returns how long Azure wants a request to wait, and false if it does not throttle.
func throttledFor(err error) (time.Duration, bool) {
	e, ok := errors.AsType[*azure.Error](err)
	if !ok || e.Kind != azure.Throttled {
		return 0, false
	}
	return max(e.RetryAfter, time.Second), true
}
