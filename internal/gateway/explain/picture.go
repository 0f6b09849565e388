package explain

import (
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/picture"
)

// The columns of a picture.
const (
	inKubernetes = iota
	listeners
	rules
	pools
	servers
)

// Picture is the explanation from the Ingress to the servers behind the application gateway.
func (v Ingress) Picture() picture.Picture {
	own := picture.Box{Kind: "Ingress", Name: v.Ingress}
	if v.Class != "" {
		own.Lines = append(own.Lines, "class "+v.Class)
	}
	for _, a := range v.Asks {
		own.Lines = append(own.Lines, a.String())
	}
	return v.picture(own)
}

// Picture is the explanation from the Gateway to the servers behind the application gateway.
func (v APIGateway) Picture() picture.Picture {
	own := picture.Box{Kind: "Gateway", Name: v.Name, Lines: append([]string{"class " + v.Class}, conditionLines(v.Conditions)...)}
	for _, e := range v.Entries {
		own.Lines = append(own.Lines, fmt.Sprintf("%s: %s at port %d, %s", e.Name, e.Protocol, e.Port, counted(int(e.Routes), "route")))
		own.Lines = append(own.Lines, conditionLines(e.Conditions)...)
	}
	return v.picture(own)
}

// Picture is the explanation from the route to the servers behind the application gateway.
func (v Route) Picture() picture.Picture {
	own := picture.Box{Kind: v.Kind, Name: v.Name, Lines: slices.Clone(v.Hostnames)}
	for _, r := range v.Rules {
		own.Lines = append(own.Lines, r.String())
	}
	for _, parent := range v.Parents {
		own.Lines = append(own.Lines, strings.TrimSuffix("parent "+parent.Name+": "+parent.Note, ": "))
		own.Lines = append(own.Lines, conditionLines(parent.Conditions)...)
	}
	return v.picture(own)
}

func conditionLines(all []Condition) (lines []string) {
	for _, c := range all {
		lines = append(lines, c.String())
	}
	return lines
}

// drawn is how the states are drawn.
var drawn = map[State]picture.State{
	Served: picture.Good, Pending: picture.Wait, Held: picture.Wait, Refused: picture.Bad, Unserved: picture.Bad, Foreign: picture.Bad,
}

func (p Part) drawn() picture.State {
	return map[PartState]picture.State{UpToDate: picture.Good, ToCreate: picture.Create, ToChange: picture.Change}[p.State]
}

// picture draws an object with what serves it.
func (v Common) picture(own picture.Box) picture.Picture {
	title := fmt.Sprintf("%s %s: %s", own.Kind, own.Name, v.State)
	p := picture.New(title, "Kubernetes", "Application gateway", "Rules", "Pools", "Servers")
	own.Key, own.State, own.To = "object", drawn[v.State], []string{"gateway"}
	if len(v.Problems) > 0 {
		own.State = picture.Bad
	}
	p.Add(inKubernetes, own)
	v.Gateway.draw(p)
	for _, l := range v.Listeners {
		l.draw(p)
	}
	for _, b := range v.Backends {
		b.draw(p, v.Services)
	}
	for _, s := range v.Services {
		p.Add(inKubernetes, picture.Box{Key: "Service " + s.Name, Kind: "Service", Name: s.Name,
			Lines: []string{fmt.Sprintf("%d of %s ready", s.ready(), counted(len(s.Endpoints), "endpoint"))}})
		s.drawAbsent(p, v.Backends)
	}
	p.Note("Problems", picture.Bad, v.Problems)
	p.Note("Warnings", picture.Change, v.Warnings)
	p.Note("Waits for", picture.Wait, v.Waits)
	p.Note("Last messages", "", v.Said)
	return *p
}

func (g Gateway) draw(p *picture.Picture) {
	b := picture.Box{Key: "gateway", Kind: "application gateway", Name: azure.ID(g.ID).Name(), Resource: g.ID}
	if g.Operational != "" {
		b.Lines = []string{g.Operational + ", " + g.Provisioning,
			"public " + orText(g.Public, "none") + ", private " + orText(g.Private, "none")}
	}
	p.Add(listeners, b)
}

// draw adds a listener with its certificate, its rule and its path rules to a picture.
func (l Listener) draw(p *picture.Picture) {
	lines := []string{fmt.Sprintf("%s at port %d for %s", l.Protocol, l.Port, orText(strings.Join(l.Hosts, ", "), "any host"))}
	if c := l.Certificate; c != nil {
		lines = append(lines, "certificate "+c.text())
	}
	p.Add(listeners, picture.Box{Key: "listener " + l.Name, Kind: "listener", Name: l.Name, State: l.drawn(), Lines: lines,
		To: []string{"object"}})
	rule := picture.Box{Key: "rule " + l.Rule.Name, Kind: "rule", Name: l.Rule.Name, State: l.Rule.drawn(),
		Lines: []string{fmt.Sprintf("priority %d", l.Priority)}, To: []string{"listener " + l.Name}}
	if l.PathMap != nil {
		rule.Lines = append(rule.Lines, "path map "+l.PathMap.Name)
		if rule.State == picture.Good {
			rule.State = l.PathMap.drawn()
		}
	}
	for _, path := range l.Paths {
		rule.Lines = append(rule.Lines, path.String())
		rule.To = append(rule.To, "pool "+path.Pool)
	}
	p.Add(rules, rule)
}

// draw adds a pool with its settings, its probe and its servers to a picture.
func (b Backend) draw(p *picture.Picture, services []Service) {
	pool := picture.Box{Key: "pool " + b.Pool.Name, Kind: "pool", Name: b.Pool.Name, State: b.Pool.drawn(), Lines: []string{
		fmt.Sprintf("%s to port %d by settings %s", b.Protocol, b.Port, b.Settings.Name),
	}}
	if pool.State == picture.Good {
		pool.State = b.Settings.drawn()
	}
	if b.Probe != nil {
		pool.Lines = append(pool.Lines, "probe "+b.Asks)
		if pool.State == picture.Good {
			pool.State = b.Probe.drawn()
		}
	}
	p.Add(pools, pool)
	for _, s := range b.Servers {
		server := picture.Box{Key: "server " + b.Pool.Name + " " + s.Address, Kind: "server", Name: s.Address, State: s.drawn(),
			Lines: []string{strings.TrimPrefix(s.String(), s.Address+", ")}, To: []string{pool.Key}}
		for _, of := range services {
			for _, e := range of.Endpoints {
				if e.Address == s.Address {
					server.Lines = append(server.Lines, strings.TrimPrefix(e.String(), e.Address+", "))
				}
			}
		}
		p.Add(servers, server)
	}
}

// drawn is how the health of a server is drawn.
func (s Server) drawn() picture.State {
	switch {
	case s.Absent:
		return picture.Create
	case s.Health == "":
		return ""
	case isHealthy(s.Health):
		return picture.Good
	}
	return picture.Bad
}

// drawAbsent adds the endpoints of a Service that no pool has to a picture.
func (s Service) drawAbsent(p *picture.Picture, backends []Backend) {
	for _, e := range s.Endpoints {
		has := func(b Backend) bool {
			return slices.ContainsFunc(b.Servers, func(o Server) bool { return o.Address == e.Address })
		}
		if !slices.ContainsFunc(backends, has) {
			p.Add(servers, picture.Box{Key: "endpoint " + s.Name + " " + e.Address, Kind: "endpoint in no pool", Name: e.Address,
				State: picture.Wait, Lines: []string{strings.TrimPrefix(e.String(), e.Address+", "), "of Service " + s.Name}})
		}
	}
}
