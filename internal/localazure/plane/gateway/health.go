package gateway

import (
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/appgateway"
)

// healthChanged starts a round that writes the health of a gateway's backends.
func (s *Service) healthChanged(key string) {
	s.mu.Lock()
	s.unsaved[key] = true
	s.mu.Unlock()
	s.requestRound()
}

// saveHealth writes the health of backends into the documents, where the action backendhealth finds it.
func (s *Service) saveHealth() error {
	s.mu.Lock()
	unsaved := s.unsaved
	s.unsaved = map[string]bool{}
	s.mu.Unlock()
	if len(unsaved) == 0 {
		return nil
	}
	gateways := s.known()
	return s.options.Azure.Do(func(w behaviour.World) error {
		for key := range unsaved {
			if g := gateways[key]; g != nil {
				w.Edit(g.id, func(doc behaviour.Object) { appgateway.SetHealth(doc, g.health()) })
			}
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
