package disk_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"kaz/internal/azure"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
	plandisk "kaz/internal/plan/disk"
	"kaz/internal/testkit"
)

// skus answers lists of SKUs.
type skus struct {
	azure.Reader
	docs  []azure.Document
	err   error
	lists int
}

func (s *skus) List(context.Context, azure.Query) ([]azure.Document, error) {
	s.lists++
	return s.docs, s.err
}

// TestSizes checks that limits of sizes come from Azure's list (182). The list is read once a day, and earlier for a size
// that is not in it.
func TestSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := &skus{docs: []azure.Document{
			azure.Document(`{"resourceType": "disks", "name": "Premium_LRS", "capabilities": [{"name": "MaxSizeGiB", "value": "4"}]}`),
			azure.Document(`{"resourceType": "virtualMachines", "name": "Standard_D4s_v3", "capabilities": [
				{"name": "MaxDataDiskCount", "value": "8"}, {"name": "UncachedDiskIOPS", "value": "6400"},
				{"name": "UncachedDiskBytesPerSecond", "value": "100663296"}, {"name": "PremiumIO", "value": "True"}]}`),
		}}
		sizes := disk.NewSizes(from, "sub", "eastus", slog.New(slog.DiscardHandler))
		check := func(what, size string, disks int, speed plandisk.Speed, lists int) {
			t.Helper()
			if d, s := sizes.Limits(t.Context(), size); d != disks || s != speed || from.lists != lists {
				t.Errorf("%s: %d disks, %v, %d lists; want %d, %v, %d", what, d, s, from.lists, disks, speed, lists)
			}
		}
		known := plandisk.Speed{IOPS: 6400, MBps: 96}
		check("182", "standard_d4s_V3", 8, known, 1)
		<-time.After(23 * time.Hour)
		check("a day", "Standard_D4s_v3", 8, known, 1)
		check("182: another size", "Standard_New", 0, plandisk.Speed{}, 2)
		check("at once again", "Standard_New", 0, plandisk.Speed{}, 2)
		<-time.After(time.Hour)
		from.err = errors.New("no permission")
		check("a failed list", "Standard_New", 0, plandisk.Speed{}, 3)
		check("what was known", "Standard_D4s_v3", 8, known, 3)
		check("a size that is only in the table", "Standard_D8s_v5", 16, plandisk.Speed{}, 3)
	})
}

// TestSizesWithoutRight checks that a driver that may not read the list knows how many disks a machine can have.
func TestSizesWithoutRight(t *testing.T) {
	from := &skus{err: &azure.Error{Kind: azure.Denied, Op: "LIST"}}
	sizes := disk.NewSizes(from, "sub", "eastus", slog.New(slog.DiscardHandler))
	for size, want := range map[string]int{"Standard_D4s_v5": 8, "standard_e16-4ds_v5": 32, "Standard_D2ads_v6": 4, "Standard_New": 0} {
		if got := sizes.DataDisks(t.Context(), size); got != want {
			t.Errorf("%s: %d disks, want %d", size, got, want)
		}
	}
}

// TestLimitOfASize checks row 99: the limit of a machine is what Azure's list of SKUs says of its size, and the table of sizes if Azure
// does not say it. A disk beyond the limit is refused without a request to the machine.
func TestLimitOfASize(t *testing.T) {
	w := newDriverCluster(t, core.Options{})
	sizes := disk.NewSizes(w.Client.Fresh(), testkit.Subscription, testkit.Location, slog.New(slog.DiscardHandler))
	const said = 4 // of Standard_D2s_v5, the size of the machines
	if got := sizes.DataDisks(t.Context(), "Standard_D2s_v5"); got != said {
		t.Fatalf("Azure lists %d data disks, want %d", got, said)
	}
	c := disk.NewController(disk.Config{
		Name: disk.DefaultName, Azure: fresh{w.Client.Fresh(), w.Client}, Nodes: &w.nodes, Cluster: cluster(),
		Limit: sizes.DataDisks, Log: slog.New(slog.DiscardHandler),
	})
	defer c.Close()
	for i := range said {
		if _, err := w.publish(c, w.volume("v"+strconv.Itoa(i)), "a"); err != nil {
			t.Fatal(err)
		}
	}
	beyond := w.volume("beyond")
	w.Forget()
	_, err := w.publish(c, beyond, "a")
	wantCode(t, "99", err, codes.ResourceExhausted)
	if err == nil || !strings.Contains(err.Error(), "attach beyond: machine a has the 4 data disks that its size allows") || len(w.Writes()) > 0 {
		t.Errorf("99: %v, writes %v", err, w.Writes())
	}
}
