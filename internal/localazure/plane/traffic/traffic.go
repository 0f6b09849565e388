// Package traffic probes the endpoints of Traffic Manager from this machine, and writes what it finds into their documents. Layer L2.
//
// Azure probes from several places. The local Azure has one.
package traffic

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/trafficmanager"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/rounds"
)

// Azure is the local Azure with the documents.
type Azure interface {
	Look(f func(w behaviour.World))
	Do(f func(w behaviour.World) error) error
	Subscribe() func(ctx context.Context, f func([]core.Change))
}

// Options are the options of a Service.
type Options struct {
	Azure Azure
	// Dial connects to host:port, nil for the network of this machine.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// After replaces time.After for the times between probes, in tests.
	After func(time.Duration) <-chan time.Time
	// Log receives errors. Nil is slog.Default.
	Log *slog.Logger
}

// Service probes until it is closed.
type Service struct {
	options Options
	http    *http.Transport
	rounds  *rounds.Rounds
	stop    context.CancelFunc
	tasks   sync.WaitGroup
	probers map[azure.ID]prober // belongs to the goroutine of rounds
}

// prober is a running probe of an endpoint.
type prober struct {
	probe trafficmanager.Probe
	stop  context.CancelFunc
}

// Start begins to probe.
func Start(ctx context.Context, o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.After == nil {
		o.After = time.After
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{}).DialContext
	}
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Service{options: o, rounds: rounds.New(), stop: stop, probers: map[azure.ID]prober{}}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	secure.InsecureSkipVerify = true // Traffic Manager wants a certificate, and does not check whether it is valid
	secure.VerifyConnection = hasCertificate
	s.http = &http.Transport{DialContext: o.Dial, DisableKeepAlives: true, TLSClientConfig: secure}
	changes := o.Azure.Subscribe() // before the first round
	s.tasks.Go(func() {
		s.rounds.Run(inner, s.round, func(err error) { o.Log.Warn("endpoints of Traffic Manager are not probed", "error", err) })
	})
	s.tasks.Go(func() { changes(inner, s.changed) })
	s.rounds.Request()
	return s
}

// changed starts a round if one of the documents decides about probes.
func (s *Service) changed(batch []core.Change) {
	if slices.ContainsFunc(batch, func(c core.Change) bool {
		return c.ID.Is(trafficmanager.Type) || c.ID.Is("Microsoft.Network/publicIPAddresses")
	}) {
		s.rounds.Request()
	}
}

// round brings the running probes up to date with the documents.
func (s *Service) round(ctx context.Context) error {
	var wanted map[azure.ID]trafficmanager.Probe
	s.options.Azure.Look(func(w behaviour.World) { wanted = trafficmanager.Probes(w) })
	for id, have := range s.probers {
		if probe, ok := wanted[id]; !ok || !reflect.DeepEqual(probe, have.probe) {
			have.stop()
			delete(s.probers, id)
		}
	}
	for id, probe := range wanted {
		if _, running := s.probers[id]; running {
			continue
		}
		one, stop := context.WithCancel(ctx)
		s.probers[id] = prober{probe, stop}
		s.tasks.Go(func() {
			defer stop()
			s.probe(one, id, probe)
		})
	}
	return nil
}

// probe probes an endpoint until the context ends. A probe that succeeds makes the endpoint Online. More failures in a row than are
// tolerated make it Degraded.
func (s *Service) probe(ctx context.Context, id azure.ID, p trafficmanager.Probe) {
	failed := 0
	for {
		limited, cancel := context.WithTimeout(ctx, p.Timeout)
		err := s.ask(limited, p)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if failed++; err == nil {
			failed = 0
			s.save(id, trafficmanager.Online)
		} else if failed > p.Tolerated {
			s.options.Log.Debug("endpoint of Traffic Manager", "endpoint", string(id), "error", err)
			s.save(id, trafficmanager.Degraded)
		}
		select {
		case <-s.options.After(p.Interval):
		case <-ctx.Done():
			return
		}
	}
}

// save writes the state of an endpoint, if its document has another one.
func (s *Service) save(id azure.ID, state trafficmanager.State) {
	changed := false
	s.options.Azure.Look(func(w behaviour.World) {
		doc, ok := w.Get(id)
		changed = ok && !trafficmanager.HasProbed(doc, state)
	})
	if !changed {
		return
	}
	err := s.options.Azure.Do(func(w behaviour.World) error {
		w.Edit(id, func(doc behaviour.Object) { trafficmanager.SetProbed(doc, state) })
		return nil
	})
	if err != nil {
		s.options.Log.Warn("state of an endpoint of Traffic Manager", "endpoint", string(id), "error", err)
	}
}

// ask sends one probe. Its error says what is wrong with the endpoint.
func (s *Service) ask(ctx context.Context, p trafficmanager.Probe) error {
	at := net.JoinHostPort(p.Address, strconv.Itoa(p.Port))
	if p.Protocol == "TCP" {
		c, err := s.options.Dial(ctx, "tcp", at)
		if err != nil {
			return err
		}
		return c.Close()
	}
	path, query, _ := strings.Cut(p.Path, "?")
	request := (&http.Request{
		Method: http.MethodGet, Host: p.Host, Header: p.Header.Clone(),
		URL: &url.URL{Scheme: strings.ToLower(p.Protocol), Host: at, Path: path, RawQuery: query},
	}).WithContext(ctx)
	response, err := s.http.RoundTrip(request) // without redirects
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if !p.Healthy(response.StatusCode) {
		return fmt.Errorf("the endpoint answers with the status code %d", response.StatusCode)
	}
	return nil
}

func hasCertificate(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the endpoint has no certificate")
	}
	return nil
}

// Close ends all probes.
func (s *Service) Close() error {
	s.stop()
	s.tasks.Wait()
	s.http.CloseIdleConnections()
	return nil
}
