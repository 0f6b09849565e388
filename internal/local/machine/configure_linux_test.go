package machine

import (
	"encoding/json"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
)

// containerd executes the template of the CNI configuration with a Node's pod ranges.
func TestNetworkConfig(t *testing.T) {
	var text strings.Builder
	node := struct{ PodCIDRRanges, Routes []string }{[]string{"10.244.1.0/24", "fd00:10:244:1::/64"}, []string{"0.0.0.0/0", "::/0"}}
	if err := template.Must(template.New("").Parse(networkConfig)).Execute(&text, node); err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatalf("%v:\n%s", err, text.String())
	}
	want := object{"cniVersion": "0.3.1", "name": "kaz", "plugins": []any{
		object{"type": "ptp", "mtu": 1500.0, "ipam": object{
			"type":   "host-local",
			"ranges": []any{[]any{object{"subnet": "10.244.1.0/24"}}, []any{object{"subnet": "fd00:10:244:1::/64"}}},
			"routes": []any{object{"dst": "0.0.0.0/0"}, object{"dst": "::/0"}},
		}},
		object{"type": "portmap", "snat": true, "capabilities": object{"portMappings": true}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
