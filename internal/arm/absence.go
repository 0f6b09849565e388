package arm

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"kaz/internal/azure"
)

// confirmed reads, and confirms an answer that something is absent. A replica of Azure that lags behind answers 404
// or an empty list (cloud-provider-azure issue 1296). If the cloud has regional endpoints, the second read goes
// there. Without an answer from there, confirmed reads again only what this client has seen before.
func confirmed[T any](
	ctx context.Context, d *Client, c call, read func(context.Context, call) (T, error), none func(T, error) bool,
) (T, error) {
	got, err := read(ctx, c)
	contradicts := none(got, err) && d.seen.has(c)
	asked := false
	if none(got, err) && d.regional != nil {
		if there, failed := read(ctx, d.atRegion(c)); failed == nil || azure.IsNotFound(failed) {
			got, err, asked = there, failed, true
		}
	}
	if none(got, err) && contradicts && !asked {
		got, err = read(ctx, c)
	}
	if contradicts {
		d.log.WarnContext(ctx, "azure said that something is not there which was there before", slog.String("op", c.op),
			slog.String("azure_id", string(c.id)), slog.Bool("confirmed", none(got, err)))
	}
	switch {
	case none(got, err):
		d.seen.drop(c)
	case err == nil:
		d.seen.add(c)
	}
	return got, err
}

// atRegion is a read at the regional endpoint. It is tried once, because not every region is known to have such an
// endpoint.
func (d *Client) atRegion(c call) call {
	to := *c.url
	to.Scheme, to.Host = d.regional.Scheme, d.regional.Host
	c.url, c.once = &to, true
	return c
}

// seenAtMost bounds how many successful reads a client remembers.
const seenAtMost = 10_000

// seen is the set of resources and lists that this client has found in Azure and has not deleted since.
type seen struct {
	mu sync.Mutex
	of map[string]call // by URL without the host
}

func seenKey(u *url.URL) string { return strings.ToLower(u.Path) + "?" + u.RawQuery }

func (s *seen) has(c call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.of[seenKey(c.url)]
	return ok
}

func (s *seen) add(c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]call{}
	}
	if len(s.of) < seenAtMost {
		c.body = nil
		s.of[seenKey(c.url)] = c
	}
}

func (s *seen) drop(c call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, seenKey(c.url))
}

// note takes a change into account. A PUT adds its resource, a PATCH changes nothing. A DELETE removes the resource,
// its parts and the lists of its type. So does an action, which may delete.
func (s *seen) note(c call) {
	switch c.method {
	case http.MethodPut:
		s.add(c)
		return
	case http.MethodPatch:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, had := range s.of {
		list := had.subject.Verb == "list"
		if had.id.Under(c.id) || had.id.Equal(c.id) || list && strings.HasPrefix(had.subject.FullType, c.subject.FullType) {
			delete(s.of, key)
		}
	}
}
