package appgateway

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"kaz/internal/localazure/behaviour"
)

// healthField is the private field of a gateway in which its data plane writes the health of backends.
const healthField = behaviour.Private + "health"

// Health is the health of a backend server as some backend settings reach it.
type Health struct {
	Pool, Setting, Address string
	// State is Healthy, Unhealthy or Unknown.
	State string
	// Note is about the last probe.
	Note string
}

// SetHealth writes the health of backends into a stored document.
func SetHealth(doc behaviour.Object, all []Health) { doc[healthField] = listed(all) }

// HealthIn returns the health of backends in a stored document.
func HealthIn(doc behaviour.Object) (all []Health) {
	for _, h := range behaviour.Objects(doc, healthField) {
		all = append(all, Health{Pool: behaviour.Text(h, "pool"), Setting: behaviour.Text(h, "setting"),
			Address: behaviour.Text(h, "address"), State: behaviour.Text(h, "state"), Note: behaviour.Text(h, "note")})
	}
	return all
}

// HasHealth reports whether a stored document has the health of backends.
func HasHealth(doc behaviour.Object, all []Health) bool {
	have, _ := doc[healthField].([]any)
	return len(have) == len(all) && (len(all) == 0 || reflect.DeepEqual(have, listed(all)))
}

func listed(all []Health) []any {
	all = slices.SortedFunc(slices.Values(all), func(a, b Health) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Setting, b.Setting), cmp.Compare(a.Address, b.Address))
	})
	list := make([]any, len(all))
	for i, h := range all {
		list[i] = behaviour.Object{"pool": h.Pool, "setting": h.Setting, "address": h.Address, "state": h.State, "note": h.Note}
	}
	return list
}

// backendHealth is the output of the action backendhealth: the servers of each pool by the settings that reach them.
func backendHealth(c *behaviour.Call) (any, error) {
	g := &gateway{Call: c}
	pools := []any{}
	for _, pool := range g.parts(poolsList) {
		collections := []any{}
		for _, setting := range g.parts(settingsList) {
			if servers := serversOf(c.Doc, pool, setting); len(servers) > 0 {
				collections = append(collections, behaviour.Object{"backendHttpSettings": behaviour.Ref(setting.id), "servers": servers})
			}
		}
		pools = append(pools, behaviour.Object{"backendAddressPool": behaviour.Ref(pool.id), "backendHttpSettingsCollection": collections})
	}
	return behaviour.Object{"backendAddressPools": pools}, nil
}

// serversOf returns the health of a pool's servers as settings reach them. Without a data plane there is none.
func serversOf(doc behaviour.Object, pool, setting part) []any {
	servers := []any{}
	for _, h := range behaviour.Objects(doc, healthField) {
		if !strings.EqualFold(behaviour.Text(h, "pool"), pool.id.Name()) || !strings.EqualFold(behaviour.Text(h, "setting"),
			setting.id.Name()) {
			continue
		}
		servers = append(servers, behaviour.Object{"address": behaviour.Text(h, "address"), "health": behaviour.Text(h, "state"),
			"healthProbeLog": behaviour.Text(h, "note")})
	}
	return servers
}
