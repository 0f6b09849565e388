package machine

import (
	"encoding/json"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// containerd executes the template of the CNI configuration in the same way.
func TestNetworkConfig(t *testing.T) {
	text, err := nodeNetwork([]string{"10.244.1.0/24", "fd00:10:244:1::/64"})
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatalf("%v:\n%s", err, text)
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

// Pods get the size of the machine, or all of the host if that is smaller.
func TestReserved(t *testing.T) {
	var host unix.Sysinfo_t
	if err := unix.Sysinfo(&host); err != nil {
		t.Fatal(err)
	}
	memory := int64(host.Totalram) * int64(host.Unit)
	for what, test := range map[string]struct {
		machine Spec
		want    map[string]string
	}{
		"unknown":         {Spec{}, map[string]string{}},
		"as the host":     {Spec{VCPUs: runtime.NumCPU(), Memory: memory}, map[string]string{}},
		"larger":          {Spec{VCPUs: runtime.NumCPU() + 1, Memory: memory + 1}, map[string]string{}},
		"less memory":     {Spec{Memory: memory - 4096}, map[string]string{"memory": "4096"}},
		"a CPU more here": {Spec{VCPUs: runtime.NumCPU() - 1}, map[string]string{"cpu": "1"}},
	} {
		if what == "a CPU more here" && runtime.NumCPU() == 1 {
			continue
		}
		if diff := cmp.Diff(test.want, reserved(test.machine)); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}
