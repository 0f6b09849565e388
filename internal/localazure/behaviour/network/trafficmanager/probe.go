package trafficmanager

import (
	"cmp"
	"net/http"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// Probe says how an endpoint is probed.
type Probe struct {
	// Protocol is HTTP, HTTPS or TCP.
	Protocol string
	// Address is the DNS name or the IP address to connect to, Host the name that HTTP requests have.
	Address, Host string
	Port          int
	Path          string
	Header        http.Header
	// Codes are the first and the last status code of each range of a healthy endpoint.
	Codes             [][2]int
	Interval, Timeout time.Duration
	// Tolerated is how many probes in a row can fail while the endpoint counts as healthy.
	Tolerated int
}

// Healthy reports whether an endpoint that answers with a status code is healthy.
func (p Probe) Healthy(code int) bool {
	for _, r := range p.Codes {
		if r[0] <= code && code <= r[1] {
			return true
		}
	}
	return len(p.Codes) == 0 && code == http.StatusOK
}

// Probes returns the probes of all endpoints that Azure monitors: those that are enabled in enabled profiles, and not always served.
func Probes(w behaviour.World) map[azure.ID]Probe {
	all := map[azure.ID]Probe{}
	for id, profile := range behaviour.Everywhere(w, Type) {
		for _, e := range endpoints(profile) {
			switch s := EndpointState(w, profile, e); {
			case kindOf(e) == nestedKind, s == Disabled, s == Inactive, s == Stopped, s == Unmonitored:
			default:
				all[id.Child(kindOf(e), behaviour.Text(e, "name"))] = probeOf(w, profile, e)
			}
		}
	}
	return all
}

func probeOf(w behaviour.World, profile, endpoint behaviour.Object) Probe {
	monitor := behaviour.Sub(profile, "properties.monitorConfig")
	number := func(name string) int {
		n, _ := behaviour.Int(monitor, name)
		return n
	}
	p := Probe{
		Protocol: behaviour.Text(monitor, "protocol"), Path: behaviour.Text(monitor, "path"), Port: number("port"),
		Host: behaviour.Text(endpoint, "properties.target"), Header: http.Header{}, Tolerated: number("toleratedNumberOfFailures"),
		Interval: time.Duration(number("intervalInSeconds")) * time.Second,
		Timeout:  time.Duration(number("timeoutInSeconds")) * time.Second,
	}
	target, _ := w.Get(azure.ID(behaviour.Text(endpoint, "properties.targetResourceId")))
	p.Address = cmp.Or(behaviour.Text(target, "properties.ipAddress"), p.Host)
	for _, h := range append(behaviour.Objects(monitor, "customHeaders"), behaviour.Objects(endpoint, "properties.customHeaders")...) {
		p.Header.Set(behaviour.Text(h, "name"), behaviour.Text(h, "value"))
	}
	p.Host = cmp.Or(p.Header.Get("Host"), p.Host)
	p.Header.Del("Host")
	for _, r := range behaviour.Objects(monitor, "expectedStatusCodeRanges") {
		low, _ := behaviour.Int(r, "min")
		high, _ := behaviour.Int(r, "max")
		p.Codes = append(p.Codes, [2]int{low, high})
	}
	return p
}

// HasProbed reports whether a stored endpoint has a state as the result of its probes.
func HasProbed(endpoint behaviour.Object, s State) bool {
	return behaviour.Text(endpoint, probeField) == string(s)
}

// SetProbed writes the result of probes, Online or Degraded, into a stored endpoint.
func SetProbed(endpoint behaviour.Object, s State) { endpoint[probeField] = string(s) }
