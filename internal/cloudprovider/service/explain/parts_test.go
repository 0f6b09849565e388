package explain

import (
	"testing"

	"kaz/internal/azure/network"
)

// A path that does not begin with a slash is not read as a part of the port.
func TestProbeText(t *testing.T) {
	for path, want := range map[string]string{
		"": "Http 80 every 5 s, 2 in a row", "/a": "Http 80/a every 5 s, 2 in a row", "8a": "Http 80 8a every 5 s, 2 in a row",
	} {
		if got := probeText(network.Probe{Protocol: "Http", Port: 80, RequestPath: path, IntervalInSeconds: 5,
			ProbeThreshold: 2}); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
