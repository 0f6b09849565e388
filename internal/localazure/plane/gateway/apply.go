package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"kaz/internal/azure"
	"kaz/internal/localazure/plane/gateway/routing"
)

// gateway is an application gateway that serves.
type gateway struct {
	id            azure.ID
	options       Options
	healthChanged func()
	tasks         sync.WaitGroup
	// begin calls a function on a goroutine. Its context ends with the gateway, or when the caller stops it.
	begin func(f func(ctx context.Context)) (stop context.CancelFunc)
	stop  context.CancelFunc

	// The following fields belong to the goroutine of rounds.
	applied [sha256.Size]byte // of what is served
	cache   map[string]cachedCertificate
	fronts  map[netip.AddrPort]*front

	mu    sync.Mutex
	pools map[string]*pool
}

func newGateway(ctx context.Context, id azure.ID, o Options, healthChanged func()) *gateway {
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	g := &gateway{id: id, options: o, healthChanged: healthChanged, stop: stop, fronts: map[netip.AddrPort]*front{},
		pools: map[string]*pool{}}
	g.begin = func(f func(ctx context.Context)) context.CancelFunc {
		one, stop := context.WithCancel(inner)
		g.tasks.Go(func() {
			defer stop()
			f(one)
		})
		return stop
	}
	return g
}

// serving is what a front needs to serve. It is replaced as a whole.
type serving struct {
	front    *routing.Front
	pools    map[string]*pool
	material *material
	http2    bool
}

// apply serves a document. What cannot be served is in the error, and the rest is served.
func (g *gateway) apply(ctx context.Context, s *source) error {
	sum, err := s.sum()
	if err == nil && sum == g.applied {
		return nil
	}
	config, err := routing.Compile(s.doc, s.facts)
	if err != nil {
		return fmt.Errorf("application gateway %s: %w", g.id, err)
	}
	for _, p := range config.Problems {
		g.options.Log.Warn("part of an application gateway is not served", "gateway", string(g.id), "problem", p)
	}
	m, err := g.material(s)
	if err != nil {
		g.options.Log.Warn("certificates of an application gateway are not served", "gateway", string(g.id), "error", err)
	}
	pools, unused := g.applyPools(config, m)
	err = g.applyFronts(ctx, config, pools, m)
	for _, p := range unused { // no front leads to them any more
		p.retire()
	}
	if err != nil {
		return fmt.Errorf("application gateway %s: %w", g.id, err)
	}
	g.applied = sum
	g.options.Log.Info("application gateway serves", "gateway", string(g.id), "frontends", len(config.Fronts), "pools", len(pools))
	return nil
}

// sum is different for sources that are served differently. It leaves out what does not decide about traffic, such as the health.
func (s *source) sum() ([sha256.Size]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	secrets := s.doc["$certificates"]
	err := errors.Join(e.Encode(s.doc["properties"]), e.Encode(secrets), e.Encode(s.facts), e.Encode(s.vault))
	return sha256.Sum256(b.Bytes()), err
}

// applyPools brings the pools up to date, and returns them with those that no rule uses any more.
func (g *gateway) applyPools(config *routing.Config, m *material) (wanted map[string]*pool, unused []*pool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	wanted = map[string]*pool{}
	for b := range config.Backends() {
		k := key(b)
		if wanted[k] != nil {
			continue
		}
		roots, err := poolOf(m.roots, b.Roots)
		if err != nil {
			g.options.Log.Warn("a backend of an application gateway is not served", "gateway", string(g.id), "setting", b.Setting,
				"error", err)
			continue
		}
		p := g.pools[k]
		if p == nil {
			p = &pool{gateway: g}
		}
		p.set(b, roots)
		wanted[k] = p
	}
	for k, p := range g.pools {
		if wanted[k] == nil {
			unused = append(unused, p)
		}
	}
	g.pools = wanted
	return wanted, unused
}

// applyFronts listens where the gateway is to listen, and nowhere else.
func (g *gateway) applyFronts(ctx context.Context, config *routing.Config, pools map[string]*pool, m *material) error {
	var problems []error
	wanted := map[netip.AddrPort]bool{}
	for i := range config.Fronts {
		f := &config.Fronts[i]
		wanted[f.At] = true
		state := &serving{front: f, pools: pools, material: m, http2: config.HTTP2}
		have := g.fronts[f.At]
		if have != nil && have.protocol != f.Protocol {
			have.close()
			delete(g.fronts, f.At)
			have = nil
		}
		if have != nil {
			have.set(state)
			continue
		}
		made, err := g.open(ctx, state)
		if err != nil {
			problems = append(problems, fmt.Errorf("frontend %s: %w", f.At, err))
			continue
		}
		g.fronts[f.At] = made
	}
	for at, f := range g.fronts {
		if !wanted[at] {
			f.close()
			delete(g.fronts, at)
		}
	}
	return errors.Join(problems...)
}

// close stops serving and waits for all goroutines.
func (g *gateway) close() {
	for _, f := range g.fronts {
		f.close()
	}
	g.stop()
	g.mu.Lock()
	for _, p := range g.pools {
		p.close()
	}
	g.mu.Unlock()
	g.tasks.Wait()
}
