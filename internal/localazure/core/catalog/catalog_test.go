package catalog

import (
	"slices"
	"testing"
)

func TestRegions(t *testing.T) {
	for _, tt := range []struct {
		ask, name, display string
		zones              int
	}{
		{"eastus2", "eastus2", "East US 2", 3},
		{"East US", "eastus", "East US", 3},
		{"WESTUS", "westus", "West US", 0},
		{"eastus2euap", "eastus2euap", "East US 2 EUAP", 4},
		{"chinanorth3", "chinanorth3", "China North 3", 3},
	} {
		r, ok := FindRegion(tt.ask)
		if !ok || r.Name != tt.name || r.Display != tt.display || len(r.Zones) != tt.zones {
			t.Errorf("FindRegion(%q) = %+v, %v; want %s, %q, %d zones", tt.ask, r, ok, tt.name, tt.display, tt.zones)
		}
	}
	if r, ok := FindRegion("atlantis"); ok {
		t.Errorf("FindRegion(atlantis) = %+v, want none", r)
	}
	for _, r := range Regions() {
		if _, ok := FindRegion(r.Display); !ok {
			t.Errorf("region %s is not found by its display name %q", r.Name, r.Display)
		}
		if _, ok := FindRegion(r.Pair); r.Pair != "" && !ok {
			t.Errorf("region %s is paired with %s, which is not a region", r.Name, r.Pair)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, tt := range []struct {
		ask    string
		cpus   int
		memory float64
		disks  int
	}{
		{"Standard_D2s_v3", 2, 8, 4},
		{"standard_d4s_v5", 4, 16, 8},
		{"Standard_B1ls", 1, 0.5, 2},
		{"Standard_E64s_v3", 64, 432, 32},
		{"Standard_F8s_v2", 8, 16, 16},
		{"Standard_DS2_v2", 2, 7, 8},
		{"Standard_A2_v2", 2, 4, 4},
		{"Standard_A0", 1, 0.75, 1},
		{"Standard_DS13", 8, 56, 32},
		{"Standard_DC2as_v5", 2, 8, 4},
	} {
		s, ok := FindSize(tt.ask)
		if !ok || s.VCPUs != tt.cpus || s.MemoryGiB != tt.memory || s.DataDisks != tt.disks {
			t.Errorf("FindSize(%q) = %+v, %v", tt.ask, s, ok)
		}
	}
	if s, ok := FindSize("Standard_D3s_v9"); ok {
		t.Errorf("FindSize(Standard_D3s_v9) = %+v, want none", s)
	}
	for _, s := range Sizes() {
		if s.VCPUs < 1 || s.MemoryGiB <= 0 || s.DataDisks < 1 || s.NetworkInterfaces < 2 || s.Family == "" {
			t.Errorf("size %+v lacks something", s)
		}
		if s.Tier() != "Standard" || !slices.Contains([]string{"x64", "Arm64"}, s.Architecture) {
			t.Errorf("size %s: tier %q, architecture %q", s.Name, s.Tier(), s.Architecture)
		}
	}
}

func TestImages(t *testing.T) {
	for _, tt := range []struct{ publisher, offer, sku, os, wantOS, version string }{
		{"MicrosoftWindowsServer", "WindowsServer", "2019-Datacenter", "", "Windows", "17763.8276.260109"},
		{"MicrosoftWindowsServer", "WindowsServer", "2019-datacenter-core", "", "Windows", "17763.8276.260109"},
		{"canonical", "ubuntu-24_04-lts", "server", "", "Linux", "24.04.202601090"},
		{"Canonical", "other", "x", "", "Linux", "22.04.202601090"},
		{"", "", "", "Windows", "Windows", "20348.4648.260108"},
		{"kinvolk", "flatcar", "stable", "", "Linux", "1.0.0"},
	} {
		i := FindImage(tt.publisher, tt.offer, tt.sku, tt.os)
		if i.OS != tt.wantOS || i.Version != tt.version || i.DiskGiB == 0 || i.OSName == "" {
			t.Errorf("FindImage(%q, %q, %q, %q) = %+v", tt.publisher, tt.offer, tt.sku, tt.os, i)
		}
	}
}
