package fabric_test

import (
	"strings"
	"testing"

	"kaz/internal/localazure/plane/fabric"
	"kaz/internal/localazure/plane/fabric/netns"
)

// Start returns an error before it creates anything.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := start(t)
	other := w.namespace("other")
	other.ip("link set lo up", "link add name taken type veth peer name end", "link set taken up", "link set end up",
		"addr add 192.0.2.1/24 dev taken", "route add 198.18.4.0/24 via 192.0.2.9 dev taken")
	for _, c := range []struct {
		instance, outside string
		want              []string
	}{
		{"", other.path, []string{`instance ""`, "1 to 8 lower-case letters and digits"}},
		{"much-too-long", other.path, []string{`instance "much-too-long"`}},
		{"up-er", other.path, []string{`instance "up-er"`}},
		{w.instance + "x", other.path, []string{"198.18.0.0/15", "in use", "198.18.4.0/24", "taken", "remove it"}},
	} {
		_, err := fabric.Start(t.Context(), fabric.Options{Instance: c.instance, Azure: w.azure, Outside: c.outside})
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("instance %q: %v, want %q in it", c.instance, err, want)
			}
		}
	}
	// This is the state of another kaz on the machine.
	_, err := fabric.Start(t.Context(), fabric.Options{Instance: w.instance + "x", Azure: w.azure, Outside: w.outside.path})
	if err == nil || !strings.Contains(err.Error(), "kaz-"+w.instance) {
		t.Errorf("a second one: %v", err)
	}
	w.outside.reachesRoute()
}

// reachesRoute checks that the route outside still exists.
func (m *machine) reachesRoute() {
	m.w.Helper()
	text, err := netns.Run(m.w.Context(), m.path, "", "ip", "route", "show", "198.18.0.0/15")
	if err != nil || !strings.Contains(text, "kaz-"+m.w.instance) {
		m.w.Errorf("route outside: %q %v", text, err)
	}
}
