package cluster_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// metric returns a counter of the cloud-controller-manager, 0 if it does not respond or lacks the
// counter.
func (c *cluster) metric(name string) float64 {
	c.t.Helper()
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // its certificate is made anew at each start
		DisableKeepAlives: true,
	}}
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.status.Metrics, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				c.t.Fatalf("metric %s: %v", name, err)
			}
			return n
		}
	}
	return 0
}
