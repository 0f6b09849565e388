package web

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// The limits of requests.
const (
	mostURL  = 8 << 10
	mostBody = 64 << 10
)

// policy lets the page load nothing but its own files, and be framed by nothing.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'"

// guarded admits requests of this machine's browsers that the page itself or its viewer makes, with the token.
func (s *Site) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // no-referrer takes the origin out of forms, too
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case !isLoopback(r):
			http.Error(w, "The web page of the local Azure is for browsers on this machine, at its loopback address.", http.StatusForbidden)
		case isForeign(r):
			http.Error(w, "Another web page must not use this one. Paste the link that kaz printed.", http.StatusForbidden)
		case len(r.RequestURI) > mostURL:
			http.Error(w, "The address is too long.", http.StatusRequestURITooLong)
		case r.URL.Query().Has("token"):
			s.enter(w, r)
		case !s.isKnown(r):
			http.Error(w, "Open the link that kaz local azure web prints. It has a token, which this browser does not have yet.",
				http.StatusUnauthorized)
		default:
			r.Body = http.MaxBytesReader(w, r.Body, mostBody)
			next.ServeHTTP(w, r)
		}
	})
}

// isLoopback reports whether a request comes from this machine to a loopback address. A name of a web page that leads here has
// another Host.
func isLoopback(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	host := (&url.URL{Host: r.Host}).Hostname()
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}

// isForeign reports whether a browser says that another site makes the request. Other ports of this machine are other sites, too.
func isForeign(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	origin := r.Header.Get("Origin")
	return site != "" && site != "none" && site != "same-origin" || origin != "" && origin != ownOrigin(r)
}

func ownOrigin(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// cookieName has the port: browsers send the cookies of a host to all its ports.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "0"
	}
	return "kaz-web-" + port
}

// enter keeps the token of a link in a cookie, and leads to the page without it.
func (s *Site) enter(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if r.Method != http.MethodGet || !s.isToken(query.Get("token")) {
		http.Error(w, "The token is wrong. kaz prints a new link at every start.", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: s.Token, Path: Path, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil})
	query.Del("token")
	to := url.URL{Path: r.URL.Path, RawQuery: query.Encode()}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

func (s *Site) isKnown(r *http.Request) bool {
	cookie, err := r.Cookie(cookieName(r))
	return err == nil && s.isToken(cookie.Value)
}

func (s *Site) isToken(text string) bool {
	return s.Token != "" && subtle.ConstantTimeCompare([]byte(text), []byte(s.Token)) == 1
}
