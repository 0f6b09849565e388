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

	"golang.org/x/net/netutil"
)

// Patience is how long each part of a probe may take unless [Config] says otherwise.
// Azure asks every five seconds or less often, and counts as failed what took longer.
const Patience = 5 * time.Second

const (
	idleTimeout    = time.Minute // between two probes of one connection
	maxHeaderBytes = 8 << 10
	maxConnections = 512 // more wait until one of these ends
)

// Config is what a [Proxy] needs.
type Config struct {
	// Target is the health server: its scheme (http) and host. The path is the
	// prober's.
	Target *url.URL
	// Patience is how long a PROXY header may take, then the request, then the answer;
	// and how long probes have that are being answered when the program stops. 0 is
	// [Patience].
	Patience time.Duration
	// Metrics may be nil.
	Metrics *Metrics
	// Log is for what changes, not for each probe.
	Log *slog.Logger
}

// Proxy answers probes with what the health server says.
type Proxy struct {
	target     *url.URL
	patience   time.Duration
	forward    *httputil.ReverseProxy
	to         http.RoundTripper
	metrics    *Metrics
	verdict    verdict
	complained atomic.Bool // of a PROXY header
	log        *slog.Logger
}

// New makes a proxy.
func New(c Config) (*Proxy, error) {
	if c.Target == nil || c.Target.Scheme != "http" || c.Target.Host == "" {
		return nil, fmt.Errorf("target %v: must be http://HOST:PORT", c.Target)
	}
	if c.Patience < 0 {
		return nil, fmt.Errorf("patience %s: must be more than 0", c.Patience)
	}
	return newProxy(c, &http.Transport{
		// The health server is on this machine: proxies of the environment are for others.
		Proxy:              nil,
		DialContext:        (&net.Dialer{}).DialContext, // ServeHTTP bounds the whole
		IdleConnTimeout:    idleTimeout,
		MaxConnsPerHost:    maxConnections,
		DisableCompression: true, // what is answered is passed on as it is
	}), nil
}

func newProxy(c Config, to http.RoundTripper) *Proxy {
	p := &Proxy{target: c.Target, patience: cmp.Or(c.Patience, Patience), to: to, metrics: c.Metrics, log: c.Log}
	p.forward = &httputil.ReverseProxy{
		// Without X-Forwarded-For: who asks is the load balancer's own matter.
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(c.Target) },
		Transport:      to,
		ModifyResponse: p.answered,
		ErrorHandler:   p.unanswered,
		ErrorLog:       slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
	}
	return p
}

// Serve answers probes until ctx ends; those that are being answered then may end. It
// owns the listener.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           p,
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
			// Whoever is still there has had its time.
			_ = server.Close()
		}
	})
	err := server.Serve(p.open(netutil.LimitListener(listener, maxConnections)))
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
	ctx, cancel := context.WithTimeout(r.Context(), p.patience)
	defer cancel()
	p.forward.ServeHTTP(w, r.WithContext(ctx))
}

// answered notes what the health server said.
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

// unanswered tells the prober, and whoever reads the log, that the health server does
// not answer.
func (p *Proxy) unanswered(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(r.Context().Err(), context.Canceled) {
		p.metrics.probe(headerOf(r.Context()), abandoned)
		w.WriteHeader(http.StatusBadGateway) // nobody reads it
		return
	}
	p.metrics.probe(headerOf(r.Context()), unreachable)
	if p.verdict.turns(unreachable) {
		p.log.Warn("health server does not answer, probes fail", "target", p.target.Host, "error", err)
	}
	http.Error(w, "kube-proxy's health server does not answer", http.StatusServiceUnavailable)
}

// quiet takes what net/http complains of: clients that speak no HTTP, which are not
// worth a line each.
type quiet struct{ log *slog.Logger }

func (q quiet) Write(b []byte) (int, error) {
	q.log.Debug("connection ended", "message", string(b))
	return len(b), nil
}
