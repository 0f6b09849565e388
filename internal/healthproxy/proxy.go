package healthproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"kaz/internal/observe"
)

// Patience is the default timeout of each part of a probe. Azure probes at most every five seconds
// and counts a slower response as a failure.
const Patience = 5 * time.Second

const (
	idleTimeout    = time.Minute // between two probes of one connection
	maxHeaderBytes = 8 << 10
	maxConnections = 512 // further connections replace silent ones
	maxOfSource    = 128 // Azure's probes have one source
)

// Config is the configuration of a [Proxy].
type Config struct {
	// Target is the scheme (http) and host of the health server. The path comes from the probe.
	Target *url.URL
	// Patience is the timeout of the PROXY header, of the request and of the response. It is also the timeout of probes in
	// flight when the program stops. 0 is [Patience].
	Patience time.Duration
	// Metrics may be nil.
	Metrics *Metrics
	// Log gets changes of state, not each probe.
	Log *slog.Logger
}

// Proxy answers probes with the responses of the health server.
type Proxy struct {
	target     *url.URL
	patience   time.Duration
	forward    *httputil.ReverseProxy
	to         http.RoundTripper
	metrics    *Metrics
	verdict    verdict
	complained atomic.Bool // about a PROXY header
	log        *slog.Logger
}

// New returns a proxy.
func New(c Config) (*Proxy, error) {
	if c.Target == nil || c.Target.Scheme != "http" || c.Target.Host == "" {
		return nil, fmt.Errorf("target %v: must be http://HOST:PORT", c.Target)
	}
	if c.Patience < 0 {
		return nil, fmt.Errorf("patience %s: must be more than 0", c.Patience)
	}
	return newProxy(c, &http.Transport{
		// The health server is on the same machine, so proxies of the environment do not apply.
		Proxy:              nil,
		DialContext:        (&net.Dialer{}).DialContext, // ServeHTTP has a timeout for the whole request
		IdleConnTimeout:    idleTimeout,
		MaxConnsPerHost:    maxConnections,
		DisableCompression: true, // responses are passed on unchanged
	}), nil
}

func newProxy(c Config, to http.RoundTripper) *Proxy {
	p := &Proxy{target: c.Target, patience: cmp.Or(c.Patience, Patience), to: to, metrics: c.Metrics, log: c.Log}
	p.forward = &httputil.ReverseProxy{
		// Adds no X-Forwarded-For: kube-proxy needs no address of the load balancer.
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(c.Target) },
		Transport:      to,
		ModifyResponse: p.answered,
		ErrorHandler:   p.unanswered,
		ErrorLog:       slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	return p
}

// Serve answers probes until ctx ends, and lets probes in flight finish. It closes the listener.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           p,
		ConnState:         func(c net.Conn, state http.ConnState) { observe.Track(raw(c), state) },
		ReadHeaderTimeout: p.patience, ReadTimeout: p.patience, WriteTimeout: 3 * p.patience, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		ConnContext:    func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, probeConn{}, c) },
		ErrorLog:       log.New(quiet{p.log}, "", 0),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		left, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.patience)
		defer cancel()
		if server.Shutdown(left) != nil {
			// The timeout for probes in flight is over.
			_ = server.Close()
		}
	})
	err := server.Serve(p.open(observe.Admit(listener, maxConnections, maxOfSource)))
	if stop() {
		close(stopped)
	}
	<-stopped
	if t, ok := p.to.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve health probes on %s: %w", listener.Addr(), err)
	}
	return nil
}

// ServeHTTP answers one probe.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		p.metrics.probe(headerOf(r.Context()), refused)
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "health probes are GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	if r.ContentLength != 0 { // a body that does not come would keep the connection
		p.metrics.probe(headerOf(r.Context()), refused)
		w.Header().Set("Connection", "close")
		http.Error(w, "health probes have no body", http.StatusBadRequest)
		if c, ok := r.Context().Value(probeConn{}).(net.Conn); ok {
			observe.Track(raw(c), http.StateIdle) // net/http keeps it for a moment
		}
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), p.patience)
	defer cancel()
	p.forward.ServeHTTP(w, r.WithContext(ctx))
}

// answered records a response of the health server.
func (p *Proxy) answered(r *http.Response) error {
	result := healthy
	if r.StatusCode >= http.StatusBadRequest {
		result = unhealthy
	}
	p.metrics.probe(headerOf(r.Request.Context()), result)
	if p.verdict.turns(result) {
		p.log.Info("health server answers", "target", p.target.Host, "path", r.Request.URL.Path, "status", r.StatusCode)
	}
	return nil
}

// unanswered responds to the probe, and logs, that the health server does not answer.
func (p *Proxy) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(r.Context().Err(), context.Canceled) {
		p.metrics.probe(headerOf(r.Context()), abandoned)
		w.WriteHeader(http.StatusBadGateway) // the client may be gone
		return
	}
	p.metrics.probe(headerOf(r.Context()), unreachable)
	if p.verdict.turns(unreachable) {
		p.log.Warn("health server does not answer, probes fail", "target", p.target.Host, "error", err)
	}
	http.Error(w, "kube-proxy's health server does not answer", http.StatusServiceUnavailable)
}

// quiet receives the error log of net/http. Clients that do not speak HTTP are only worth a debug
// line.
type quiet struct{ log *slog.Logger }

func (q quiet) Write(b []byte) (int, error) {
	q.log.Debug("connection ended", "message", string(b))
	return len(b), nil
}
