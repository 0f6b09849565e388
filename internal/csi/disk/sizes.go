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
	"kaz/internal/plan/disk"
)

// Sizes knows how many data disks machines of each size can have, as Azure says for a region. It reads the list when it
// is first asked, and again after a day or for a size that is not in it.
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
	if l, known := s.sizes[size]; known && age < sizesTTL || age < againSoon {
		return l.disks, l.speed
	}
	if err := s.refresh(ctx); err != nil {
		s.log.Warn("the number of data disks of machine sizes is not known; Azure refuses what is too much", "error", err)
	}
	s.read = time.Now()
	l := s.sizes[size]
	return l.disks, l.speed
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
