package machinesize

import (
	"testing"

	"kaz/internal/localazure/core/catalog"
)

func TestFind(t *testing.T) {
	for name, want := range map[string]Size{
		"Standard_D4s_v5":     {DataDisks: 8, Accelerated: true},
		"standard_d4DS_v5":    {DataDisks: 8, Accelerated: true, CacheGiB: 100, TempGiB: 150},
		"Standard_D4as_v6":    {DataDisks: 8, Accelerated: true},
		"Standard_D4ds_v6":    {DataDisks: 12, Accelerated: true, NVMeGiB: 220},
		"Standard_E16-4ds_v5": {DataDisks: 32, Accelerated: true, CacheGiB: 400, TempGiB: 600},
		"Standard_B2s":        {DataDisks: 4},
		"Standard_D2as_v7":    {DataDisks: 10, Accelerated: true},
		"Standard_E16ads_v7":  {DataDisks: 48, Accelerated: true, NVMeGiB: 880},
		"Standard_F8alds_v7":  {DataDisks: 48, Accelerated: true, NVMeGiB: 880},
		"Standard_E372ids_v7": {DataDisks: 64, Accelerated: true},
		"Standard_L8s_v4":     {DataDisks: 24, Accelerated: true},
		"Standard_L8as_v4":    {DataDisks: 16, Accelerated: true},
		"Standard_L12aos_v4":  {DataDisks: 32, Accelerated: true},
	} {
		if got, known := Find(name); !known || got != want {
			t.Errorf("Find(%q) = %+v, %v, want %+v", name, got, known, want)
		}
	}
	if got, known := Find("Standard_D4s_v99"); known {
		t.Errorf("Find(Standard_D4s_v99) = %+v, want none", got)
	}
}

func TestNVMeOnly(t *testing.T) {
	for name, want := range map[string]bool{
		"Standard_D4s_v6": true, "standard_e8ads_V7": true, "Standard_D4s_v5": false, "Standard_D2": false,
		"Standard_NG32ads_V620_v1": false, "Standard_DS3_v2": false, "Standard_L8s_v4": true, "Standard_L12aos_v4": true,
		"Standard_L8as_v3": false, "Standard_D4s_v4": false, "Standard_E16-4ds_v6": true, "Standard_NV8as_v4": false,
	} {
		if got := NVMeOnly(name); got != want {
			t.Errorf("NVMeOnly(%q) = %v", name, got)
		}
	}
}

func TestPlacement(t *testing.T) {
	for _, tt := range []struct {
		size string
		gib  int
		want string
	}{
		{"Standard_D2ds_v5", 50, "CacheDisk"},
		{"Standard_D2ds_v5", 64, "ResourceDisk"},
		{"Standard_D2ds_v5", 128, ""},
		{"Standard_D2ds_v6", 110, "NvmeDisk"},
		{"Standard_D2s_v5", 30, ""},
		{"Standard_D2s_v99", 30, ""},
	} {
		if got := Placement(tt.size, tt.gib); got != tt.want {
			t.Errorf("Placement(%s, %d) = %q, want %q", tt.size, tt.gib, got, tt.want)
		}
	}
}

// TestSizesOfLocalAzure checks that the table agrees with the resource SKUs of the local Azure.
func TestSizesOfLocalAzure(t *testing.T) {
	for _, s := range catalog.Sizes() {
		got, known := Find(s.Name)
		want := Size{DataDisks: s.DataDisks, Accelerated: s.Accelerated}
		for _, p := range s.Placements() {
			switch p.Name {
			case "CacheDisk":
				want.CacheGiB = p.GiB
			case "ResourceDisk":
				want.TempGiB = p.GiB
			case "NvmeDisk":
				want.NVMeGiB = p.GiB
			}
		}
		if !known || got != want || NVMeOnly(s.Name) != s.NVMe {
			t.Errorf("Find(%q) = %+v, %v, NVMe only %v, want %+v, %v", s.Name, got, known, NVMeOnly(s.Name), want, s.NVMe)
		}
	}
}
