package gateway

import (
	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/appgateway"
)

// saveHealth writes the health of backends into the documents, where the action backendhealth finds it. A write of a gateway that began
// before may have taken it away, so it is compared in each round.
func (s *Service) saveHealth() error {
	changed := map[azure.ID][]appgateway.Health{}
	s.options.Azure.Look(func(w behaviour.World) {
		for _, g := range s.known() {
			now := g.health()
			if doc, ok := w.Get(g.id); ok && !appgateway.HasHealth(doc, now) {
				changed[g.id] = now
			}
		}
	})
	if len(changed) == 0 {
		return nil
	}
	return s.options.Azure.Do(func(w behaviour.World) error {
		for id, now := range changed {
			w.Edit(id, func(doc behaviour.Object) { appgateway.SetHealth(doc, now) })
		}
		return nil
	})
}

// health is the health of all members, by pool and setting.
func (g *gateway) health() []appgateway.Health {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []appgateway.Health
	for _, p := range g.pools {
		p.mu.Lock()
		for _, m := range p.members {
			all = append(all, appgateway.Health{Pool: m.Pool, Setting: p.backend.Setting, Address: m.Host, State: string(m.health),
				Note: m.note})
		}
		p.mu.Unlock()
	}
	return all
}
