package front

import (
	"errors"
	"fmt"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core/message"
	"kaz/internal/localazure/core/world"
)

// The limits of what a request gets while no transaction is open: its downloads and its computations.
const (
	mostDownloads    = 100
	mostDownloaded   = 16 << 20
	mostComputations = 1000
	// mostAtOnce is how many requests compute at the same time. Each may use the memory of a budget of templates.
	mostAtOnce = 4
)

// untilComplete calls do until it needs no further download and no further computation.
func (f *Front) untilComplete(r *exchange, do func() error) error {
	size := 0
	for computed := 0; ; {
		err := do()
		if needs, ok := errors.AsType[*behaviour.NotComputed](err); ok && computed < mostComputations {
			computed++
			f.compute(needs)
			continue
		} else if ok {
			return behaviour.Gateway(409, "Conflict", "What the request was computed from has changed %d times. Please retry.", computed)
		}
		missing, ok := errors.AsType[*behaviour.NotDownloaded](err)
		if !ok {
			return err
		}
		if err := f.get(r, missing.URI, &size); err != nil {
			return err
		}
	}
}

// compute computes what a request needs. The request reads the world for moments only, so that others go on.
func (f *Front) compute(needs *behaviour.NotComputed) {
	f.computes <- struct{}{}
	defer func() { <-f.computes }()
	needs.Compute(func(g func(behaviour.World)) {
		f.world.Read(func(t *world.Transaction) { g(t.World) })
	})
}

// get downloads the content at a URI. It adds to the size of all downloads of the request.
func (f *Front) get(r *exchange, uri string, size *int) error {
	if r.Downloads == nil {
		r.Downloads = map[string]message.Downloaded{}
	}
	var got message.Downloaded
	switch {
	case len(r.Downloads) >= mostDownloads:
		return behaviour.Gateway(400, "InvalidContentLink", "The request needs more than %d downloads.", mostDownloads)
	case !strings.HasPrefix(uri, "http://") && !strings.HasPrefix(uri, "https://"):
		got.Err = fmt.Errorf("download %s: the URI is not one of HTTP", uri)
	default:
		got.Text, got.Err = f.download(r.http.Context(), uri)
		if *size += len(got.Text); *size > mostDownloaded {
			return behaviour.Gateway(400, "InvalidContentLink", "The request needs downloads of more than %d MB.", mostDownloaded>>20)
		}
	}
	r.Downloads[uri] = got
	return nil
}
