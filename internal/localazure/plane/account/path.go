package account

import (
	"context"
	"net/http"
	"strings"

	"kaz/internal/localazure/plane/cloud"
	"kaz/internal/localazure/plane/sharedkey"
)

// paths says that a client addresses accounts by paths of a host, as in http://127.0.0.1:10000/account1/docs.
type paths struct{ scheme, host, service string }

type pathsKey struct{}

// ByPath serves accounts by the first part of the path, with the data plane of a service, which tells them apart by hosts.
func ByPath(service string, plane http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		p := paths{scheme, r.Host, service}
		plane.ServeHTTP(w, Resolve(r.WithContext(context.WithValue(r.Context(), pathsKey{}, p))))
	})
}

// Resolve returns a request as data planes read it. One that is a part of another request, or that another one causes, has the context of
// that one: its client addresses accounts in the same way.
func Resolve(r *http.Request) *http.Request {
	p, ok := r.Context().Value(pathsKey{}).(paths)
	switch {
	case !ok:
		return r
	case !strings.EqualFold(r.Host, p.host):
		return r.WithContext(sharedkey.WithPath(r.Context(), ""))
	}
	name, rest := cutAccount(r.URL.Path)
	resolved := r.WithContext(sharedkey.WithPath(r.Context(), r.URL.EscapedPath()))
	address := *r.URL
	address.Path = rest
	if address.RawPath != "" {
		_, address.RawPath = cutAccount(address.RawPath)
	}
	resolved.URL, resolved.Host = &address, name+"."+p.service+"."+cloud.Clouds()[0].Storage
	return resolved
}

// cutAccount splits /account1/docs into account1 and /docs.
func cutAccount(path string) (name, rest string) {
	name, rest, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return name, "/" + rest
}

// PartHost returns the host of a part of a request with a path. The SDK for Python leaves out the account there.
func PartHost(r *http.Request, path string) string {
	p, ok := r.Context().Value(pathsKey{}).(paths)
	name, _ := cutAccount(path)
	if own, _, _ := strings.Cut(r.Host, "."); !ok || name != own {
		return r.Host
	}
	return p.host
}

// Base returns the URL of the account of a request as its client addresses it, with a slash at its end. The scheme is for a client that
// addresses accounts by hosts.
func Base(r *http.Request, scheme string) string {
	if p, ok := r.Context().Value(pathsKey{}).(paths); ok {
		name, _, _ := strings.Cut(r.Host, ".")
		return p.scheme + "://" + p.host + "/" + name + "/"
	}
	return scheme + "://" + r.Host + "/"
}
