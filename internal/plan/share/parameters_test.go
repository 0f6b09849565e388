package share_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"kaz/internal/plan/share"
)

// TestReferenceHasAllKeys checks defect 35: the keys in the reference of the driver are those that it reads.
func TestReferenceHasAllKeys(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/azurefile-csi-driver.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| key | values | default |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	keys := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for _, key := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			keys++
			if _, err := share.ReadClass(map[string]string{key[1]: "x"}, nil); err != nil && strings.Contains(err.Error(), "is not known") {
				t.Errorf("the driver does not know %s: %v", key[1], err)
			}
		}
	}
	if keys < 40 {
		t.Errorf("%d keys in the reference", keys)
	}
	for key, value := range map[string]string{"accountQuota": "99", "provisionedBandwidth": "-1"} {
		if _, err := share.ReadClass(map[string]string{key: value}, nil); err == nil {
			t.Errorf("%s: %s is allowed", key, value)
		}
	}
}

// TestNamesOfShares checks defect 15: volumes with long or bad names have shares of their own, and the same ones each time.
func TestNamesOfShares(t *testing.T) {
	long := "pvc-" + strings.Repeat("a", 60)
	seen := map[string]string{}
	for _, volume := range []string{long + "-1", long + "-2", "PVC_1", "pvc.1", "PVC_2", "a"} {
		var p share.Parameters
		name, err := p.NameOf(volume)
		again, _ := p.NameOf(volume)
		if err != nil || share.CheckName(name) != nil || again != name {
			t.Errorf("%s: %s, then %s, %v", volume, name, again, err)
		}
		if other, taken := seen[name]; taken {
			t.Errorf("%s and %s have the share %s", volume, other, name)
		}
		seen[name] = volume
	}
}
