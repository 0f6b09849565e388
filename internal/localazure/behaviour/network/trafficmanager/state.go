package trafficmanager

import (
	"slices"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
)

// State is what Azure knows of the health of an endpoint or a profile.
type State string

// The states of endpoints. CheckingEndpoints is the state of a profile only.
const (
	Checking          State = "CheckingEndpoint"
	CheckingEndpoints State = "CheckingEndpoints"
	Online            State = "Online"
	Degraded          State = "Degraded"
	Disabled          State = "Disabled"
	Inactive          State = "Inactive"
	Stopped           State = "Stopped"
	Unmonitored       State = "Unmonitored"
)

func isDisabled(doc behaviour.Object, path string) bool {
	return behaviour.Text(doc, path) == string(Disabled)
}

// EndpointState returns the state of an endpoint of a stored profile.
func EndpointState(w behaviour.World, profile, endpoint behaviour.Object) State {
	return endpointState(w, profile, endpoint, deepest)
}

// endpointState follows nested endpoints at most as many levels as are left.
func endpointState(w behaviour.World, profile, endpoint behaviour.Object, left int) State {
	switch {
	case isDisabled(endpoint, "properties.endpointStatus"):
		return Disabled
	case isDisabled(profile, "properties.profileStatus"):
		return Inactive
	case kindOf(endpoint) == nestedKind:
		return nestedState(w, endpoint, left-1)
	case behaviour.Text(endpoint, "properties.alwaysServe") == "Enabled":
		return Unmonitored
	case kindOf(endpoint) == azureKind && isGone(w, endpoint):
		return Stopped
	}
	if probed := behaviour.Text(endpoint, probeField); probed != "" {
		return State(probed)
	}
	return Checking
}

// isGone reports whether the Azure resource of an endpoint was deleted.
func isGone(w behaviour.World, endpoint behaviour.Object) bool {
	id := azure.ID(behaviour.Text(endpoint, "properties.targetResourceId"))
	_, ok := w.Get(id)
	return !ok && w.Known(id.Type())
}

// nestedState returns the state of a nested endpoint: it needs a number of healthy endpoints in its profile, in all and of each family.
func nestedState(w behaviour.World, endpoint behaviour.Object, left int) State {
	child, ok := w.Get(azure.ID(behaviour.Text(endpoint, "properties.targetResourceId")))
	if !ok || left <= 0 {
		return Stopped
	}
	if s := profileState(w, child, left); s == Disabled || s == Inactive {
		return Stopped
	}
	state := Online
	for _, need := range []struct{ field, of string }{
		{"minChildEndpoints", ""}, {"minChildEndpointsIPv4", ipv4Address}, {"minChildEndpointsIPv6", ipv6Address},
	} {
		least, _ := behaviour.Int(endpoint, "properties."+need.field)
		online, checking := 0, 0
		for _, e := range endpoints(child) {
			if need.of != "" && recordType(e) != need.of {
				continue
			}
			switch endpointState(w, child, e, left) {
			case Online, Unmonitored:
				online++
			case Checking:
				checking++
			}
		}
		switch {
		case online >= least:
		case online+checking >= least:
			state = Checking
		default:
			return Degraded
		}
	}
	return state
}

// ProfileState returns the state of a stored profile.
func ProfileState(w behaviour.World, profile behaviour.Object) State {
	return profileState(w, profile, deepest)
}

func profileState(w behaviour.World, profile behaviour.Object, left int) State {
	if isDisabled(profile, "properties.profileStatus") {
		return Disabled
	}
	var states []State
	for _, e := range endpoints(profile) {
		states = append(states, endpointState(w, profile, e, left))
	}
	for _, s := range []struct{ has, is State }{
		{Degraded, Degraded}, {Online, Online}, {Unmonitored, Online}, {Checking, CheckingEndpoints},
	} {
		if slices.Contains(states, s.has) {
			return s.is
		}
	}
	return Inactive
}
