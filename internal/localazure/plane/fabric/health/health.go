// Package health probes the backends of load balancers as Azure does: over TCP, HTTP or HTTPS, from 168.63.129.16
// inside the virtual network, at an interval. Layer L2.
package health

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"kaz/internal/localazure/plane/fabric/netns"
	"kaz/internal/localazure/plane/fabric/wiring"
)

// Prober runs probes, each on its own goroutine.
type Prober struct {
	changed func()
	mu      sync.Mutex
	running map[string]*task
	healthy map[string]bool
	tasks   sync.WaitGroup
}

type task struct {
	wiring.Probe
	stop context.CancelFunc
}

// New returns a prober that calls changed after each change of a backend's health. A backend is unhealthy until its
// first good answer.
func New(changed func()) *Prober {
	return &Prober{changed: changed, running: map[string]*task{}, healthy: map[string]bool{}}
}

// Set replaces the probes. After a change of its probe, a backend keeps its health until the next answer.
func (p *Prober) Set(ctx context.Context, all []wiring.Probe) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := map[string]bool{}
	for _, probe := range all {
		wanted[probe.Key] = true
		if have := p.running[probe.Key]; have != nil {
			if have.Probe == probe {
				continue
			}
			have.stop()
		}
		inner, stop := context.WithCancel(ctx)
		q := &task{Probe: probe, stop: stop}
		p.running[probe.Key] = q
		p.tasks.Go(func() { p.repeat(inner, q) })
	}
	for key, have := range p.running {
		if !wanted[key] {
			have.stop()
			delete(p.running, key)
			delete(p.healthy, key)
		}
	}
}

// Healthy returns the keys of the probes with healthy backends.
func (p *Prober) Healthy() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.healthy)
}

// Close stops all probes and waits for their goroutines.
func (p *Prober) Close() {
	p.mu.Lock()
	for key, q := range p.running {
		q.stop()
		delete(p.running, key)
	}
	p.mu.Unlock()
	p.tasks.Wait()
}

// history is the answers of one backend to a probe.
type history struct {
	last bool
	same int // as many equal answers in a row
}

// settles notes an answer and reports whether it decides the backend's health: after as many equal answers in a row as the threshold. One
// good answer suffices for a backend that has never been healthy.
func (h *history) settles(well, wasHealthy bool, threshold int) bool {
	if well != h.last {
		h.same = 0
	}
	h.last = well
	h.same++
	return h.same >= threshold || well && !wasHealthy
}

// repeat probes until the context ends.
func (p *Prober) repeat(ctx context.Context, q *task) {
	ticker := time.NewTicker(q.Interval)
	defer ticker.Stop()
	var h history
	for {
		well := Probe(ctx, q.Probe) == nil
		if ctx.Err() != nil {
			return
		}
		if h.settles(well, p.wasHealthy(q.Key), q.Threshold) {
			p.record(q, well)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// wasHealthy reports whether a backend has been healthy since it is probed.
func (p *Prober) wasHealthy(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, was := p.healthy[key]
	return was
}

func (p *Prober) record(q *task, well bool) {
	p.mu.Lock()
	changed := p.running[q.Key] == q && p.healthy[q.Key] != well // an entry is made by the first good answer
	if changed {
		p.healthy[q.Key] = well
	}
	p.mu.Unlock()
	if changed {
		p.changed()
	}
}

// Probe probes once. The timeout is the interval between two probes.
func Probe(ctx context.Context, probe wiring.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, probe.Interval)
	defer cancel()
	if strings.EqualFold(probe.Protocol, "Tcp") {
		c, err := dial(ctx, probe)
		if err != nil {
			return err
		}
		return c.Close()
	}
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, probe) },
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // as the probes of Azure do
	}
	defer transport.CloseIdleConnections()
	host := net.JoinHostPort(probe.Address.String(), strconv.Itoa(probe.Port))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.ToLower(probe.Protocol)+"://"+host+"/"+
		strings.TrimPrefix(probe.Path, "/"), nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "Load Balancer Agent")
	client := http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16) // the body does not matter
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// dial connects from the platform's address in the backend's router.
func dial(ctx context.Context, probe wiring.Probe) (c net.Conn, err error) {
	err = netns.Do(probe.Namespace, func() error {
		from := &net.TCPAddr{IP: wiring.Platform.AsSlice()}
		if probe.Address.Is6() {
			device, err := net.InterfaceByName(probe.Device)
			if err != nil {
				return err
			}
			// The zone is a number, because Go caches the names of interfaces for all namespaces together.
			from = &net.TCPAddr{IP: wiring.Gateway6.AsSlice(), Zone: strconv.Itoa(device.Index)}
		}
		dialer := net.Dialer{LocalAddr: from, KeepAlive: -1}
		c, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(probe.Address.String(), strconv.Itoa(probe.Port)))
		return err
	})
	return c, err
}
