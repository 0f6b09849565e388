package budget

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/prometheus/client_golang/prometheus"

	"kaz/internal/observe"
)

// shownBudgets is a collector that shows what the budgets of a process have left. It holds weak pointers only: a
// client that is made anew brings its own budget, and an unused budget is no longer shown.
type shownBudgets struct {
	tokens, waiting, until *prometheus.Desc

	mu      sync.Mutex
	budgets []weak.Pointer[Budget]
}

// Show adds a budget to the collector of a Registerer.
func Show(r prometheus.Registerer, b *Budget) error {
	if r == nil {
		return nil
	}
	labels := []string{"subscription_id", "provider", "class"}
	shown := &shownBudgets{
		tokens: prometheus.NewDesc("kaz_arm_budget_tokens",
			"Requests that Azure will accept at once, as far as its answers tell. Where it names no number there is no series.",
			labels, nil),
		waiting: prometheus.NewDesc("kaz_arm_budget_waiting", "Requests that wait for their turn.", labels, nil),
		until: prometheus.NewDesc("kaz_arm_budget_throttled_until_timestamp_seconds",
			"Unix time until which no request is sent because Azure asked for that, 0 when requests are sent.", labels, nil),
	}
	if err := observe.Register(r, &shown); err != nil {
		return err
	}
	shown.mu.Lock()
	defer shown.mu.Unlock()
	shown.budgets = slices.DeleteFunc(shown.budgets, func(p weak.Pointer[Budget]) bool { return p.Value() == nil || p.Value() == b })
	shown.budgets = append(shown.budgets, weak.Make(b))
	return nil
}

// Describe and Collect make it a collector.
func (s *shownBudgets) Describe(c chan<- *prometheus.Desc) {
	c <- s.tokens
	c <- s.waiting
	c <- s.until
}

// Collect sends the metrics.
func (s *shownBudgets) Collect(c chan<- prometheus.Metric) {
	s.mu.Lock()
	budgets := slices.Clone(s.budgets)
	s.mu.Unlock()
	all := map[gateKey]level{}
	for _, p := range budgets {
		if b := p.Value(); b != nil {
			b.levels(time.Now(), all)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(all), func(a, b gateKey) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) {
		l := all[key]
		send := func(d *prometheus.Desc, v float64) {
			c <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, key.subscription, key.namespace, string(key.class))
		}
		if l.limited {
			send(s.tokens, l.tokens)
		}
		send(s.waiting, float64(l.waiting))
		send(s.until, l.until)
	}
}

// level is what a count has left.
type level struct {
	limited bool
	tokens  float64
	waiting int64
	until   float64 // Unix time, 0 for open
}

// levels adds the counts of a budget to the levels of earlier budgets. Counts of single resources are shown with the
// count that they belong to.
func (b *Budget) levels(now time.Time, all map[gateKey]level) {
	b.mu.Lock()
	gates := maps.Clone(b.gates)
	b.mu.Unlock()
	for key, g := range gates {
		wide := key
		wide.question = ""
		l, before := all[wide]
		own := g.level(now)
		if key.question == "" {
			l.waiting += own.waiting
			if own.limited && (!l.limited || !before || own.tokens < l.tokens) {
				l.limited, l.tokens = true, own.tokens
			}
		}
		l.until = max(l.until, own.until)
		all[wide] = l
	}
}

func (g *gate) level(now time.Time) level {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := level{waiting: g.waiting.Load()}
	if g.left.limited {
		g.left.grow(now)
		l.limited, l.tokens = true, max(g.left.tokens, 0)
	}
	if g.opens.After(now) {
		l.until = float64(g.opens.UnixMilli()) / 1000
	}
	return l
}
