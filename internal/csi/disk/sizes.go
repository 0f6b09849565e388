package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/machinesize"
	"kaz/internal/plan/disk"
)

// Sizes knows how many data disks machines of each size can have, as Azure says for a region. It reads the list when it
// is first asked, and again after a day or for a size that is not in it. Where Azure does not say it, as to a node without
// the right to read the list, a table of sizes does.
type Sizes struct {
	azure        azure.Reader
	subscription string
	location     string
	log          *slog.Logger

	mu    sync.Mutex // held while the list is read, so that it is read once
	sizes map[string]limits
	read  time.Time
}

// limits are what a machine of a size can have.
type limits struct {
	disks int
	speed disk.Speed
}

// NewSizes returns the sizes of a region.
func NewSizes(from azure.Reader, subscription, location string, log *slog.Logger) *Sizes {
	return &Sizes{azure: from, subscription: subscription, location: location, log: log}
}

// How long a list is used, and how long after a read it is not read again for a size that is not in it. A failed read counts
// as a read.
const (
	sizesTTL  = 24 * time.Hour
	againSoon = 10 * time.Minute
)

// DataDisks returns how many data disks a machine of a size can have, 0 if that is not known.
func (s *Sizes) DataDisks(ctx context.Context, size string) int {
	disks, _ := s.Limits(ctx, size)
	return disks
}

// Limits returns how many data disks a machine of a size can have, and how fast they can be together without a cache.
// What is not known is zero.
func (s *Sizes) Limits(ctx context.Context, size string) (disks int, speed disk.Speed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	size = strings.ToLower(size)
	age := time.Since(s.read)
	if _, listed := s.sizes[size]; listed && age < sizesTTL || age < againSoon {
		return s.known(size)
	}
	if err := s.refresh(ctx); err != nil {
		s.log.Warn("the machine sizes of the region cannot be read; a table of sizes has their number of data disks", "error", err)
	}
	s.read = time.Now()
	return s.known(size)
}

// known returns the limits of a size: those of Azure's list, or the number of disks of the table.
func (s *Sizes) known(size string) (disks int, speed disk.Speed) {
	if l, listed := s.sizes[size]; listed {
		return l.disks, l.speed
	}
	fromTable, _ := machinesize.Find(size)
	return fromTable.DataDisks, disk.Speed{}
}

func (s *Sizes) refresh(ctx context.Context) error {
	const skus = "Microsoft.Compute/skus"
	docs, err := s.azure.List(ctx, azure.Query{
		Scope: azure.SubscriptionID(s.subscription), Type: skus, Filter: fmt.Sprintf("location eq '%s'", s.location),
	})
	if err != nil {
		return err
	}
	sizes := map[string]limits{}
	for _, doc := range docs {
		if name, l, ok := readSize(doc); ok {
			sizes[name] = l
		}
	}
	s.sizes = sizes
	return nil
}

// readSize reads the limits of a machine size.
func readSize(doc azure.Document) (name string, l limits, ok bool) {
	var sku struct {
		ResourceType, Name string
		Capabilities       []struct{ Name, Value string }
	}
	if json.Unmarshal(doc, &sku) != nil || !strings.EqualFold(sku.ResourceType, "virtualMachines") {
		return "", l, false
	}
	for _, c := range sku.Capabilities {
		n, err := strconv.ParseInt(c.Value, 10, 64)
		if err != nil {
			continue // capabilities that are not numbers
		}
		const mib = 1 << 20
		switch strings.ToLower(c.Name) {
		case "maxdatadiskcount":
			l.disks, ok = int(n), true
		case "uncacheddiskiops":
			l.speed.IOPS = n
		case "uncacheddiskbytespersecond":
			l.speed.MBps = n / mib
		}
	}
	return strings.ToLower(sku.Name), l, ok
}
