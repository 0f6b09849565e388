package gateway

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"kaz/internal/localazure/plane/gateway/routing"
)

// request is a request on its way through the gateway.
type request struct {
	front    *front
	state    *served
	exchange *routing.Exchange
	original string // the path and query as the client sent them
	host     string // with the port, as the client sent it
	rewrites []routing.Rewrite
	backend  *routing.Backend
	pool     *pool
	literal  string // of the path, what the pattern of the path rule fixes
	changed  bool   // a rewrite changed the address
	cookie   string // the affinity cookie that the client sent
	used     *member
	cancel   context.CancelFunc
	leave    func() // the member
}

// answer serves a request.
func (f *front) answer(w http.ResponseWriter, r *http.Request) {
	state := f.state.Load()
	site := state.front.Site(hostname(r.Host))
	if site == nil {
		refuse(w, http.StatusNotFound)
		return
	}
	client, _ := netip.ParseAddrPort(r.RemoteAddr)
	x := &routing.Exchange{Method: r.Method, Host: hostname(r.Host), Path: r.URL.Path, Query: r.URL.RawQuery, Original: r.URL.RequestURI(),
		Header: r.Header.Clone(), Proto: r.Proto, Client: netip.AddrPortFrom(client.Addr().Unmap(), client.Port()), ServerPort: f.at.Port(),
		TLS: r.TLS}
	q := &request{front: f, state: state, exchange: x, original: r.URL.RequestURI(), host: r.Host}
	dropNamed(x.Header)   // before the gateway adds headers, which a client cannot take away
	q.forwarded(x.Header) // before the rewrites, which can change these headers
	chosen, ends := site.Route(x, f.gateway.options.ExactPaths)
	action := chosen.Action
	q.literal, q.rewrites, q.changed = chosen.Literal, chosen.Rewrites, chosen.Changed
	switch {
	case !ends:
		refuse(w, http.StatusInternalServerError)
	case action.Redirect != nil:
		q.redirect(w, r, action.Redirect)
	case action.Backend == nil || state.pools[key(action.Backend)] == nil:
		refuse(w, http.StatusBadGateway)
	default:
		q.backend, q.pool = action.Backend, state.pools[key(action.Backend)]
		q.pass(w, r)
	}
}

// hostname is a host without its port.
func hostname(host string) string { return (&url.URL{Host: host}).Hostname() }

func (q *request) redirect(w http.ResponseWriter, r *http.Request, to *routing.Redirect) {
	w.Header().Set("Location", to.Location(hostname(r.Host), r.URL.EscapedPath(), r.URL.RawQuery))
	page(w, to.Status)
}

// pass passes the request on to a member of the pool.
func (q *request) pass(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	q.cancel, q.leave = cancel, func() {}
	defer func() { q.leave() }()
	if c, err := r.Cookie(q.backend.Cookie); q.backend.Cookie != "" && err == nil {
		q.cookie = c.Value
	}
	(&httputil.ReverseProxy{
		Rewrite: q.rewrite, Transport: q, ModifyResponse: q.respond, ErrorHandler: q.fail, BufferPool: buffers,
		ErrorLog: slog.NewLogLogger(q.front.gateway.options.Log.Handler(), slog.LevelDebug),
	}).ServeHTTP(w, r.WithContext(ctx))
}

// buffers are for the bodies of answers. A new one for each request would be most of the memory of a request.
var buffers = &bufferPool{sync.Pool{New: func() any { return new([bufferSize]byte) }}}

const bufferSize = 32 << 10

// bufferPool implements [httputil.BufferPool].
type bufferPool struct{ sync.Pool }

// Get implements [httputil.BufferPool].
func (p *bufferPool) Get() []byte { return p.Pool.Get().(*[bufferSize]byte)[:] }

// Put implements [httputil.BufferPool].
func (p *bufferPool) Put(b []byte) { p.Pool.Put((*[bufferSize]byte)(b)) }

// rewrite makes the request for the backend.
func (q *request) rewrite(p *httputil.ProxyRequest) {
	x, in := q.exchange, p.In
	p.Out.Header = withoutHops(x.Header, p.Out.Header)
	if q.changed {
		p.Out.Header.Set("X-Original-Url", q.original)
	}
	p.Out.URL.Scheme = strings.ToLower(string(q.backend.Protocol))
	p.Out.URL.RawQuery = x.Query
	if path := routing.Override(q.backend.Path, x.Path, q.literal); path != in.URL.Path {
		p.Out.URL.Path, p.Out.URL.RawPath = path, ""
	}
	p.Out.Host = q.host
	switch {
	case !strings.EqualFold(x.Host, hostname(q.host)): // a rewrite sets the host
		p.Out.Host = x.Host
	case q.backend.Host != "":
		p.Out.Host = q.backend.Host
	}
}

// hopByHop are the headers between the client and the gateway. For those at the end the ReverseProxy knows what the backend gets.
var hopByHop = []string{"Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Trailer", "Transfer-Encoding",
	"Connection", "Upgrade", "Te"}

// dropNamed removes the headers that a client's Connection names, because they are between the client and the gateway.
func dropNamed(header http.Header) {
	for _, field := range header.Values("Connection") {
		for name := range strings.SplitSeq(field, ",") {
			header.Del(strings.TrimSpace(name))
		}
	}
}

// withoutHops returns headers without those that are between the client and the gateway. An upgrade, such as to WebSocket, stays.
func withoutHops(header, proxied http.Header) http.Header {
	for _, name := range hopByHop {
		header.Del(name)
	}
	for _, name := range hopByHop[len(hopByHop)-3:] {
		if values := proxied.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	return header
}

// forwarded adds the headers by which a backend learns of the client.
func (q *request) forwarded(h http.Header) {
	scheme := "http"
	if q.exchange.TLS != nil {
		scheme = "https"
	}
	client := q.exchange.Client.String()
	before := h.Values("X-Forwarded-For")
	q.exchange.ForwardedFor = slices.Clone(before)
	if len(before) > 0 {
		client = strings.Join(before, ", ") + ", " + client
	}
	h.Set("X-Forwarded-For", client)
	h.Set("X-Forwarded-Proto", scheme)
	h.Set("X-Forwarded-Port", strconv.Itoa(int(q.front.at.Port())))
	h.Set("X-Original-Host", q.host)
	var trace [16]byte
	_, _ = rand.Read(trace[:]) // never fails
	h.Set("X-Appgw-Trace-Id", hex.EncodeToString(trace[:]))
	h.Del("X-Original-Url")
}

// unclosed keeps a body open for another attempt. The HTTP server closes it.
type unclosed struct{ io.Reader }

func (unclosed) Close() error { return nil }

var errNoMember = errors.New("no member of the pool is healthy")

// RoundTrip sends the request to a member. If the member cannot be reached, the next one gets it.
func (q *request) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = unclosed{r.Body}
	}
	failure := error(errNoMember)
	tried := map[*member]bool{}
	for {
		m := q.pool.pick(q.cookie, tried)
		if m == nil {
			return nil, failure
		}
		tried[m] = true
		r.URL.Host = m.Address()
		if q.backend.PickHost && q.backend.Host == "" && strings.EqualFold(q.exchange.Host, hostname(q.host)) {
			r.Host = m.Host
		}
		q.leave()
		q.leave = q.pool.enter(m, q.cancel)
		response, err := q.pool.transport().RoundTrip(r)
		if err == nil {
			q.used = m
			return response, nil
		}
		failure = err
		if unreached, ok := errors.AsType[notConnected](err); !ok || r.Context().Err() != nil {
			return nil, err
		} else if q.front.gateway.options.Log.Enabled(r.Context(), slog.LevelDebug) {
			q.front.gateway.options.Log.Debug("backend not reached", "member", m.Address(), "error", unreached.error)
		}
	}
}

// respond completes the response for the client.
func (q *request) respond(r *http.Response) error {
	if q.backend.Cookie != "" && q.used.cookie != q.cookie {
		for _, c := range []*http.Cookie{
			{Name: q.backend.Cookie, Value: q.used.cookie, Path: "/"},
			{Name: q.backend.Cookie + "CORS", Value: q.used.cookie, Path: "/", SameSite: http.SameSiteNoneMode, Secure: true},
		} {
			r.Header.Add("Set-Cookie", c.String())
		}
	}
	q.exchange.Response, q.exchange.Status = r.Header, r.StatusCode
	q.exchange.Respond(q.rewrites)
	return nil
}

// fail answers in place of a backend that did not.
func (q *request) fail(w http.ResponseWriter, r *http.Request, err error) {
	q.front.gateway.options.Log.Debug("application gateway answers for its backend", "pool", q.backend.Pool, "error", err)
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() && r.Context().Err() == nil {
		refuse(w, http.StatusGatewayTimeout)
		return
	}
	refuse(w, http.StatusBadGateway)
}

// refuse answers with an error of the gateway itself.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Server", "Microsoft-Azure-Application-Gateway/v2")
	page(w, status)
}

// page writes a page of the gateway itself.
func page(w http.ResponseWriter, status int) {
	title := fmt.Sprintf("%d %s", status, http.StatusText(status))
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	// An error means that the client is gone.
	_, _ = fmt.Fprintf(w, "<html>\n<head><title>%s</title></head>\n<body><h1>%s</h1><hr>Microsoft-Azure-Application-Gateway/v2</body>\n"+
		"</html>\n", title, title)
}
