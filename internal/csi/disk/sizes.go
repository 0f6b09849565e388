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
)

// Sizes knows how many data disks machines of each size can have, as Azure says for a region. It reads the list when it
// is first asked, and again after a day or for a size that is not in it.
type Sizes struct {
	azure        azure.Reader
	subscription string
	location     string
	log          *slog.Logger

	mu    sync.Mutex // held while the list is read, so that it is read once
	disks map[string]int
	read  time.Time
}

// NewSizes returns the sizes of a region.
func NewSizes(from azure.Reader, subscription, location string, log *slog.Logger) *Sizes {
	return &Sizes{azure: from, subscription: subscription, location: location, log: log}
}

// How long a list is good, and how long a size that is not in it, or a failed read, is believed.
const (
	sizesTTL  = 24 * time.Hour
	againSoon = 10 * time.Minute
)

// DataDisks returns how many data disks a machine of a size can have, 0 if that is not known.
func (s *Sizes) DataDisks(ctx context.Context, size string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	size = strings.ToLower(size)
	age := time.Since(s.read)
	if most, known := s.disks[size]; known && age < sizesTTL || age < againSoon {
		return most
	}
	if err := s.refresh(ctx); err != nil {
		s.log.Warn("the number of data disks of machine sizes is not known; Azure refuses what is too much", "error", err)
	}
	s.read = time.Now()
	return s.disks[size]
}

func (s *Sizes) refresh(ctx context.Context) error {
	const skus = "Microsoft.Compute/skus"
	docs, err := s.azure.List(ctx, azure.Query{
		Scope: azure.SubscriptionID(s.subscription), Type: skus, Filter: fmt.Sprintf("location eq '%s'", s.location),
	})
	if err != nil {
		return err
	}
	disks := map[string]int{}
	for _, doc := range docs {
		if name, most, ok := readSize(doc); ok {
			disks[name] = most
		}
	}
	s.disks = disks
	return nil
}

// readSize reads the number of data disks of a machine size.
func readSize(doc azure.Document) (name string, most int, ok bool) {
	var sku struct {
		ResourceType, Name string
		Capabilities       []struct{ Name, Value string }
	}
	if json.Unmarshal(doc, &sku) != nil || !strings.EqualFold(sku.ResourceType, "virtualMachines") {
		return "", 0, false
	}
	for _, c := range sku.Capabilities {
		if strings.EqualFold(c.Name, "MaxDataDiskCount") {
			n, err := strconv.Atoi(c.Value)
			return strings.ToLower(sku.Name), n, err == nil
		}
	}
	return "", 0, false
}

// Slots returns how many disks the driver may attach to a machine that can have most disks, of which others need
// reserved. 0 means that the number is not known.
func Slots(most, reserved int64) int64 {
	if most <= 0 {
		return 0
	}
	return max(most-reserved, 1)
}
