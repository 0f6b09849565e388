// Package sharedkey checks requests that are signed with a key of a storage account. Layer L2.
package sharedkey

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/plane/sas"
)

// maxSkew is the time by which a signed request may be old.
const maxSkew = 15 * time.Minute

// Signed reports whether a request has a signature of this kind: "Authorization: SharedKey ACCOUNT:SIGNATURE".
func Signed(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Authorization"), "SharedKey ")
}

// Check returns why a request is not signed with one of the keys of an account, "" if it is.
func Check(r *http.Request, account string, keys [2]string, now time.Time) string {
	name, signature, ok := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "SharedKey "), ":")
	if !ok || name != account {
		return "The account of the signature is not the account of the request."
	}
	at, err := http.ParseTime(cmp.Or(r.Header.Get("x-ms-date"), r.Header.Get("Date")))
	if err != nil || now.Sub(at).Abs() > maxSkew {
		return "The date of the request is missing, or more than 15 minutes from now."
	}
	for _, order := range []func(a, b string) int{strings.Compare, WithoutHyphens} {
		if sas.SignedBy(keys, Text(r, account, order), signature) {
			return ""
		}
	}
	return "The signature does not fit the request and the keys of the account."
}

// Text returns the text that the signature of a request is for, with the names of its headers in an order.
func Text(r *http.Request, account string, compare func(a, b string) int) string {
	length := r.Header.Get("Content-Length")
	if length == "" && r.ContentLength > 0 {
		length = strconv.FormatInt(r.ContentLength, 10)
	}
	if length == "0" {
		length = ""
	}
	date := r.Header.Get("Date")
	if r.Header.Get("x-ms-date") != "" {
		date = ""
	}
	h := r.Header.Get
	lines := []string{r.Method, h("Content-Encoding"), h("Content-Language"), length, h("Content-MD5"), h("Content-Type"), date,
		h("If-Modified-Since"), h("If-Match"), h("If-None-Match"), h("If-Unmodified-Since"), h("Range")}
	var names []string
	for name := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-ms-") {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, compare)
	for _, name := range names {
		var values []string
		for _, value := range r.Header.Values(name) {
			values = append(values, strings.TrimSpace(value))
		}
		lines = append(lines, name+":"+strings.Join(values, ","))
	}
	return strings.Join(lines, "\n") + "\n/" + account + Path(r) + canonicalQuery(r.URL.Query())
}

type pathKey struct{}

// WithPath says which path the client of a request has signed, if it is not that of the request.
func WithPath(ctx context.Context, path string) context.Context {
	return context.WithValue(ctx, pathKey{}, path)
}

// Path returns the path of a request that its client has signed.
func Path(r *http.Request) string {
	signed, _ := r.Context().Value(pathKey{}).(string)
	return cmp.Or(signed, r.URL.EscapedPath(), "/")
}

// canonicalQuery returns the parameters of a URL as signatures have them.
func canonicalQuery(given url.Values) string {
	var text strings.Builder
	query := map[string][]string{}
	for name, values := range given {
		name = strings.ToLower(name)
		query[name] = append(query[name], values...)
	}
	var names []string
	for name := range query {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		slices.Sort(query[name])
		text.WriteString("\n" + name + ":" + strings.Join(query[name], ","))
	}
	return text.String()
}

// WithoutHyphens is the order in which Azure's clients sort the names of headers: hyphens only decide between equal names.
func WithoutHyphens(a, b string) int {
	without := func(s string) string { return strings.ReplaceAll(s, "-", "") }
	return cmp.Or(strings.Compare(without(a), without(b)), strings.Compare(a, b))
}
