// Package health asks the receivers of load balancers whether they are well, as
// Azure's probes do: over TCP, HTTP or HTTPS, from 168.63.129.16 inside the virtual
// network, again and again at an interval. Layer L2.
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

	"kaz/internal/emulator/plane/fabric/netns"
	"kaz/internal/emulator/plane/fabric/wiring"
)

// Prober asks all questions that it was given, side by side.
type Prober struct {
	changed func()
	mu      sync.Mutex
	running map[string]*question
	healthy map[string]bool
	tasks   sync.WaitGroup
}

type question struct {
	wiring.Probe
	stop context.CancelFunc
}

// New is a prober that calls changed whenever a receiver's health did. A receiver
// is not well before it said so.
func New(changed func()) *Prober {
	return &Prober{changed: changed, running: map[string]*question{}, healthy: map[string]bool{}}
}

// Set makes the questions those. The health of a receiver whose question changed
// stays what it was until it is asked again.
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
		q := &question{Probe: probe, stop: stop}
		p.running[probe.Key] = q
		p.tasks.Go(func() { p.ask(inner, q) })
	}
	for key, have := range p.running {
		if !wanted[key] {
			have.stop()
			delete(p.running, key)
			delete(p.healthy, key)
		}
	}
}

// Healthy are the keys of questions whose receivers are well.
func (p *Prober) Healthy() map[string]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.healthy)
}

// Close stops all questions and waits until nobody asks any more.
func (p *Prober) Close() {
	p.mu.Lock()
	for key, q := range p.running {
		q.stop()
		delete(p.running, key)
	}
	p.mu.Unlock()
	p.tasks.Wait()
}

// ask asks until the context ends. As many answers in a row as the threshold says
// change the health.
func (p *Prober) ask(ctx context.Context, q *question) {
	ticker := time.NewTicker(q.Interval)
	defer ticker.Stop()
	same, last := 0, false
	for first := true; ; first = false {
		well := Ask(ctx, q.Probe) == nil
		if ctx.Err() != nil {
			return
		}
		if well != last || first {
			same = 0
		}
		last = well
		if same++; same >= q.Threshold {
			p.note(q, well)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (p *Prober) note(q *question, well bool) {
	p.mu.Lock()
	changed := p.running[q.Key] == q && p.healthy[q.Key] != well
	if changed {
		p.healthy[q.Key] = well
	}
	p.mu.Unlock()
	if changed {
		p.changed()
	}
}

// Ask asks once. The receiver has as long for its answer as there is between two
// questions.
func Ask(ctx context.Context, probe wiring.Probe) error {
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
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // Azure's probes accept any certificate
	}
	defer transport.CloseIdleConnections()
	host := net.JoinHostPort(probe.Address.String(), strconv.Itoa(probe.Port))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.ToLower(probe.Protocol)+"://"+host+"/"+strings.TrimPrefix(probe.Path, "/"), nil)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "Load Balancer Agent")
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, 1<<16) // what it says does not matter
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// dial connects from the platform's address in the router of the receiver.
func dial(ctx context.Context, probe wiring.Probe) (c net.Conn, err error) {
	err = netns.Do(probe.Namespace, func() error {
		from := &net.TCPAddr{IP: wiring.Platform.AsSlice()}
		if probe.Address.Is6() {
			device, err := net.InterfaceByName(probe.Device)
			if err != nil {
				return err
			}
			// By number: names of interfaces are remembered across namespaces.
			from = &net.TCPAddr{IP: wiring.Gateway6.AsSlice(), Zone: strconv.Itoa(device.Index)}
		}
		dialer := net.Dialer{LocalAddr: from, KeepAlive: -1}
		c, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(probe.Address.String(), strconv.Itoa(probe.Port)))
		return err
	})
	return c, err
}
