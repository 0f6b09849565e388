// Package route has the intermediate form of what Kubernetes objects ask of an application gateway: sites with routes to backends.
// Front ends such as Ingress write it, and package layout makes the children of a gateway of it. Layer L1: values and nothing else.
package route

import (
	"cmp"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/azure/secret"
)

// Object is the Kubernetes object that asks for something.
type Object struct {
	Kind, Namespace, Name string
	Created               time.Time
}

// Key identifies the object: "Ingress/default/web".
func (o Object) Key() string { return o.Kind + "/" + o.Namespace + "/" + o.Name }

// Compare orders objects by age, the oldest first. Of two conflicting objects, the first one wins.
func Compare(a, b Object) int {
	return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
		strings.Compare(a.Kind, b.Kind))
}

// Site is what one object asks for some hosts at one port.
type Site struct {
	Object  Object
	Port    int32
	Private bool
	// Hosts are in lower case and have the same routes. None stands for all hosts.
	Hosts []string
	// TLS is nil for HTTP and TCP.
	TLS *TLS
	// Stream says that the gateway passes connections on, byte for byte. The hosts are server names of TLS, and there is one route.
	Stream         bool
	FirewallPolicy azure.ID
	// Priority is wanted for the site's rules, 0 for any.
	Priority int32
	Routes   []Route
}

// Protocol is that of the site's listeners.
func (s Site) Protocol() string {
	switch {
	case s.Stream && s.TLS != nil:
		return network.GatewayTLS
	case s.Stream:
		return network.GatewayTCP
	case s.TLS != nil:
		return network.GatewayHTTPS
	}
	return network.GatewayHTTP
}

// TLS is how a site speaks TLS: with a certificate of a Secret, or with one that the gateway has.
type TLS struct {
	Certificate *Certificate
	Installed   string
	Profile     string // that the gateway has, "" for none
}

// Certificate is a certificate with its key as a gateway takes it.
type Certificate struct {
	Namespace, Secret string
	// Hash differs for different contents.
	Hash          string
	PFX, Password secret.Text // PFX is in base64
	Expires       time.Time
}

// Route is what becomes of requests with a path.
type Route struct {
	Object Object // of the site
	Path   Path
	// When are conditions that a request must meet beside the path.
	When []Condition
	// Sensitive says that the case of the path counts, whether or not the gateway looks at it.
	Sensitive bool
	// Rank orders the routes of one object: of two that match a request equally well the lower one counts.
	Rank   int
	Target Target
	// Change is what becomes of the request on its way to the backend, and of the answer.
	Change Change
	// FirewallPolicy and Rewrite are empty for none.
	FirewallPolicy azure.ID
	Rewrite        Rewrite
}

// Match says which paths a [Path] stands for.
type Match int

// The matches.
const (
	Exact    Match = iota // the path alone
	Element               // the path, and the paths below it
	Text                  // every path that begins with the text
	All                   // every path
	Fallback              // every path that no route of another object has
)

// Path is a set of request paths. Literal is empty for All and Fallback.
type Path struct {
	Match   Match
	Literal string
}

// Patterns returns the path as the gateway's patterns.
func (p Path) Patterns() []string {
	switch p.Match {
	case Exact:
		return []string{p.Literal}
	case Element:
		return []string{p.Literal, p.Literal + "/*"}
	default:
		return []string{p.Literal + "*"}
	}
}

// ComparePaths orders paths so that the first one that matches a request is the right one.
func ComparePaths(a, b Path) int {
	exact := func(p Path) int { return map[bool]int{true: 0, false: 1}[p.Match == Exact] }
	return cmp.Or(exact(a)-exact(b), len(b.Literal)-len(a.Literal), int(a.Match)-int(b.Match), strings.Compare(a.Literal, b.Literal))
}

// Target is where requests go: to a backend, to several by their weights, or by a redirect to the site with the same hosts at another
// port or to a URL. Or they get a status code at once.
type Target struct {
	Backend    *Backend
	Shares     []Share
	RedirectTo int32
	Redirect   *Redirect
	Status     int
}

// Status codes of a [Target].
const (
	NotFound      = 404
	InternalError = 500
)

// Share is a backend with the weight of all its members together.
type Share struct {
	*Backend
	Weight int32
}

// Redirect sends clients to a URL without a path, or with one instead of the request's.
type Redirect struct {
	Type      string // of Azure
	URL       string
	KeepsPath bool
}

// Backend is a port of a Service with the way in which the gateway speaks to it. The settings and the probe lack their references.
type Backend struct {
	Namespace, Service string
	Port               string // of the Service, as the object names it
	Pool               network.GatewayPool
	Settings           network.GatewaySettings
	Roots              []string // trusted root certificates that the gateway has
	Authorities        []Root   // further ones
	Probe              network.GatewayProbe
	// Variant tells settings for the same port from others of the same object, "" for the usual ones.
	Variant string
}

// Root is a certificate that signs those of backends.
type Root struct {
	Hash string // of the content
	Data string // DER in base64
}

// Rewrite is a rewrite rule set: of the gateway, or of an object in a namespace. The zero value is none.
type Rewrite struct {
	Installed       string
	Namespace, Name string
	Set             network.GatewayRewriteSet
}
