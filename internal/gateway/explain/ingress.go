package explain

import (
	"fmt"
	"strings"
	"time"
)

// Ingress is the explanation of an Ingress.
type Ingress struct {
	Ingress string `json:"ingress"` // NAMESPACE/NAME
	Class   string `json:"class,omitempty"`
	Asks    []Ask  `json:"asks,omitempty"`
	TLS     []TLS  `json:"tls,omitempty"`
	Common
}

// Common is what the explanation of an object of any kind has.
type Common struct {
	State     State      `json:"state"`
	Gateway   Gateway    `json:"gateway"`
	Address   string     `json:"address,omitempty"` // at which the gateway serves the object
	Status    []string   `json:"status,omitempty"`  // addresses in its status
	Listeners []Listener `json:"listeners,omitempty"`
	Backends  []Backend  `json:"backends,omitempty"`
	Services  []Service  `json:"services,omitempty"`
	// Waits are what must happen next. Problems do not go away by themselves. With Warnings the object is served nevertheless.
	Waits    []string `json:"waits,omitempty"`
	Problems []string `json:"problems,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	// Said are the last warnings of the controller, as it said them.
	Said []string `json:"said,omitempty"`
}

// Verdict returns what is common to the explanations of all kinds.
func (v Common) Verdict() Common { return v }

// State says whether an object is served.
type State string

// The states.
const (
	Served   State = "served"   // the gateway has all that the object asks for
	Pending  State = "pending"  // the gateway lacks some of it, and the controller will write it
	Held     State = "held"     // the controller writes nothing
	Refused  State = "refused"  // Azure has refused the gateway with it; what the gateway has for it stays
	Unserved State = "unserved" // it cannot be served as it is
	Foreign  State = "foreign"  // it is no object of the controller
)

// Ask is a path that an Ingress asks for.
type Ask struct {
	Host     string `json:"host,omitempty"` // "" for any
	Path     string `json:"path,omitempty"`
	PathType string `json:"pathType,omitempty"`
	Service  string `json:"service,omitempty"`
	Port     string `json:"port,omitempty"` // number or name
}

// TLS is a Secret that an Ingress asks for.
type TLS struct {
	Hosts  []string `json:"hosts,omitempty"` // none for all
	Secret string   `json:"secret,omitempty"`
}

// Gateway is the gateway as it is.
type Gateway struct {
	ID           string `json:"id"`
	Operational  string `json:"operationalState,omitempty"`
	Provisioning string `json:"provisioningState,omitempty"`
	Public       string `json:"publicAddress,omitempty"`
	Private      string `json:"privateAddress,omitempty"`
}

// Part is a child of the gateway.
type Part struct {
	Name  string    `json:"name"`
	State PartState `json:"state"`
}

// PartState compares a child of the gateway with what the objects ask for.
type PartState string

// The states of parts.
const (
	UpToDate PartState = "upToDate"
	ToCreate PartState = "toCreate"
	ToChange PartState = "toChange"
)

// mark is how text shows a state, as the other commands do.
func (p Part) mark() string {
	return map[PartState]string{UpToDate: "=", ToCreate: "+", ToChange: "~"}[p.State]
}

// Listener is a listener that serves the Ingress, with what leads to its backends.
type Listener struct {
	Part
	Protocol    string       `json:"protocol"`
	Port        int32        `json:"port"`
	Private     bool         `json:"private,omitempty"`
	Hosts       []string     `json:"hosts,omitempty"` // none for any
	Certificate *Certificate `json:"certificate,omitempty"`
	Rule        Part         `json:"rule"`
	Priority    int32        `json:"priority"`
	PathMap     *Part        `json:"pathMap,omitempty"`
	Paths       []Path       `json:"paths,omitempty"` // of this Ingress
}

// Certificate is the certificate of a listener.
type Certificate struct {
	Part
	Secret  string    `json:"secret,omitempty"` // "" for one that the gateway has
	Subject string    `json:"subject,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// Path is a path rule, or the rest of a listener's requests.
type Path struct {
	Rule     string   `json:"rule,omitempty"`     // "" for the rest
	Patterns []string `json:"patterns,omitempty"` // none for the rest
	Redirect string   `json:"redirectConfiguration,omitempty"`
	Pool     string   `json:"pool,omitempty"`
	Settings string   `json:"settings,omitempty"`
	Rewrites string   `json:"rewriteRuleSet,omitempty"`
}

// Backend is a pool with the settings by which the gateway reaches it for this Ingress.
type Backend struct {
	Pool     Part     `json:"pool"`
	Settings Part     `json:"settings"`
	Probe    *Part    `json:"probe,omitempty"`
	Protocol string   `json:"protocol"`
	Port     int32    `json:"port"`
	Asks     string   `json:"probeRequest,omitempty"`
	Servers  []Server `json:"servers,omitempty"`
}

// Server is an address in a pool.
type Server struct {
	Address string `json:"address"`
	Health  string `json:"health,omitempty"` // as Azure says; "" if it is not known
	Log     string `json:"healthProbeLog,omitempty"`
	// Absent says that the pool at the gateway does not have it yet.
	Absent bool `json:"absent,omitempty"`
}

// Service is a Service that the Ingress refers to.
type Service struct {
	Name      string     `json:"name"`
	Endpoints []Endpoint `json:"endpoints,omitempty"`
}

// Endpoint is an endpoint of a Service.
type Endpoint struct {
	Address     string `json:"address"`
	Pod         string `json:"pod,omitempty"`
	Ready       bool   `json:"ready"`
	Terminating bool   `json:"terminating,omitempty"`
}

// printer writes lines with a name before them.
type printer struct{ strings.Builder }

func (p *printer) line(name, format string, args ...any) {
	fmt.Fprintf(p, "%-12s %s\n", name, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (p *printer) list(title string, all []string) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(p, "\n%s:\n", title)
	for _, text := range all {
		fmt.Fprintf(p, "  - %s\n", text)
	}
}

// String returns the explanation as text.
func (v Ingress) String() string {
	var p printer
	class := "of no class"
	if v.Class != "" {
		class = "class " + v.Class
	}
	p.line("ingress", "%s, %s: %s", v.Ingress, class, v.State)
	for _, a := range v.Asks {
		p.line("asks for", "%s", a)
	}
	for _, t := range v.TLS {
		p.line("tls", "Secret %s for %s", orText(t.Secret, "none"), orText(strings.Join(t.Hosts, ", "), "all hosts"))
	}
	v.writeGateway(&p)
	v.writeAddress(&p)
	v.writeRest(&p)
	return p.String()
}

// writeGateway writes which gateway serves an object.
func (v Common) writeGateway(p *printer) {
	p.line("gateway", "%s", v.Gateway.ID)
	if v.Gateway.Operational != "" {
		p.line("", "%s, provisioning state %s, public address %s, private address %s", v.Gateway.Operational, v.Gateway.Provisioning,
			orText(v.Gateway.Public, "none"), orText(v.Gateway.Private, "none"))
	}
}

// writeAddress writes the address of an object that has one in its status.
func (v Common) writeAddress(p *printer) {
	if v.Address != "" || len(v.Status) > 0 {
		p.line("address", "%s; in the status: %s", orText(v.Address, "none"), orText(strings.Join(v.Status, ", "), "none"))
	}
}

// writeRest writes the children of the gateway, and what is to be done.
func (v Common) writeRest(p *printer) {
	v.writeParts(p)
	p.list("problems", v.Problems)
	p.list("warnings", v.Warnings)
	p.list("waits for", v.Waits)
	p.list("last messages", v.Said)
	if len(v.Problems)+len(v.Waits) == 0 {
		p.WriteString("\nnothing is pending\n")
	}
}

// writeParts writes the children of the gateway.
func (v Common) writeParts(p *printer) {
	if len(v.Listeners) > 0 {
		p.WriteString("\nat the gateway (= up to date, + to create, ~ to change):\n")
	}
	for _, l := range v.Listeners {
		l.write(p)
	}
	for _, b := range v.Backends {
		b.write(p)
	}
	for _, s := range v.Services {
		p.line("service", "%s, %d of %s ready", s.Name, s.ready(), counted(len(s.Endpoints), "endpoint"))
		for _, e := range s.Endpoints {
			p.line("", "%s", e)
		}
	}
}

func (l Listener) write(p *printer) {
	p.line("listener", "%s %s, %s at port %d for %s", l.mark(), l.Name, l.Protocol, l.Port, orText(strings.Join(l.Hosts, ", "), "any host"))
	if c := l.Certificate; c != nil {
		p.line("certificate", "%s %s", c.mark(), c.text())
	}
	p.line("rule", "%s %s, priority %d", l.Rule.mark(), l.Rule.Name, l.Priority)
	if l.PathMap != nil {
		p.line("path map", "%s %s", l.PathMap.mark(), l.PathMap.Name)
	}
	for _, path := range l.Paths {
		name := "path rule"
		if path.Rule == "" {
			name = "the rest"
		}
		p.line(name, "%s", path)
	}
}

// text says where a certificate is from, and until when it is valid.
func (c Certificate) text() string {
	from := "of the gateway"
	if c.Secret != "" {
		from = "of Secret " + c.Secret
	}
	expires := "its expiry is not known"
	if !c.Expires.IsZero() {
		expires = "expires " + c.Expires.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, %s, %s, %s", c.Name, from, orText(c.Subject, "its subject is not known"), expires)
}

func (b Backend) write(p *printer) {
	p.line("pool", "%s %s, %s", b.Pool.mark(), b.Pool.Name, counted(len(b.Servers), "member"))
	p.line("settings", "%s %s, %s to port %d", b.Settings.mark(), b.Settings.Name, b.Protocol, b.Port)
	if b.Probe != nil {
		p.line("probe", "%s %s, %s", b.Probe.mark(), b.Probe.Name, b.Asks)
	}
	for _, s := range b.Servers {
		p.line("", "%s", s)
	}
}

// String returns the path as text.
func (a Ask) String() string {
	where := orText(a.Host, "any host") + " " + orText(a.Path, "any path")
	if a.PathType != "" {
		where += " (" + a.PathType + ")"
	}
	if a.Service == "" {
		return where + " to no Service"
	}
	return where + " to Service " + a.Service + " port " + a.Port
}

// String returns the path as text.
func (a Path) String() string {
	text := strings.Join(a.Patterns, ", ")
	if a.Rule != "" {
		text = a.Rule + ", " + text
	}
	if a.Redirect != "" {
		return strings.TrimSpace(text + " redirected by " + a.Redirect)
	}
	text += " to pool " + a.Pool + " by settings " + a.Settings
	if a.Rewrites != "" {
		text += ", rewritten by " + a.Rewrites
	}
	return strings.TrimSpace(text)
}

// String returns the address as text.
func (s Server) String() string {
	switch {
	case s.Absent:
		return s.Address + ", not at the gateway yet"
	case s.Health == "":
		return s.Address + ", its health is not known"
	case s.Log == "":
		return s.Address + ", " + s.Health
	}
	return s.Address + ", " + s.Health + ": " + s.Log
}

// String returns the endpoint as text.
func (e Endpoint) String() string {
	state := "not ready"
	switch {
	case e.Terminating:
		state = "terminating"
	case e.Ready:
		state = "ready"
	}
	if e.Pod == "" {
		return e.Address + ", " + state
	}
	return e.Address + ", pod " + e.Pod + ", " + state
}

func (s Service) ready() (n int) {
	for _, e := range s.Endpoints {
		if e.Ready && !e.Terminating {
			n++
		}
	}
	return n
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
