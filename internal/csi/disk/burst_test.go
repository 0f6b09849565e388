package disk_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"

	"kaz/internal/azure"
	"kaz/internal/csi/disk"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// The scene of bursts: disks on machines, and the time between two calls. The usual driver needs up to mostRequests in all.
const (
	burstMachines = 4
	burstDisks    = 32
	apart         = 2 * time.Millisecond
	mostRequests  = 383
)

// bursts is a driver with disks that are attached, moved and detached at once, as external-provisioner and external-attacher
// call it.
type bursts struct {
	*driverCluster
	driver  *disk.Controller
	uses    *disk.Attachments
	calls   calls
	nodes   []string
	volumes []*csispec.Volume
}

// calls are the calls of a driver, over gRPC or without it.
type calls struct {
	create    func(context.Context, *csispec.CreateVolumeRequest) (*csispec.CreateVolumeResponse, error)
	publish   func(context.Context, *csispec.ControllerPublishVolumeRequest) (*csispec.ControllerPublishVolumeResponse, error)
	unpublish func(context.Context, *csispec.ControllerUnpublishVolumeRequest) (*csispec.ControllerUnpublishVolumeResponse, error)
}

// row is a burst. phases is how many operations of a machine follow each other, writes how many writes there should be.
type row struct {
	what           string
	writes, phases int
	usual          time.Duration // the time of the usual driver
	do             func() []error
}

func (b *bursts) rows() []row {
	at := func(n, shift int) string { return b.nodes[(n+shift)%len(b.nodes)] }
	return []row{
		{"create", burstDisks, 0, 70 * time.Second, func() []error { return b.burst(b.create) }},
		{"attach one", 1, 1, 15 * time.Second, func() []error { return []error{b.attach(0, at(0, 0))} }},
		{"detach one", 1, 1, 16 * time.Second, func() []error { return []error{b.detach(0, at(0, 0))} }},
		{"attach all", burstMachines, 1, 17800 * time.Millisecond, func() []error {
			return b.burst(func(n int) error { return b.attach(n, at(n, 0)) })
		}},
		{"move all", 2 * burstMachines, 2, 35300 * time.Millisecond, func() []error {
			return b.burst(func(n int) error {
				if err := b.detach(n, at(n, 0)); err != nil {
					return err
				}
				return b.attach(n, at(n, 1))
			})
		}},
		{"detach all", burstMachines, 1, 16300 * time.Millisecond, func() []error {
			return b.burst(func(n int) error { return b.detach(n, at(n, 1)) })
		}},
	}
}

// took is what a burst took. azure is the time that Azure alone needs.
type took struct {
	cost
	azure time.Duration
}

func (m took) beyond() time.Duration { return m.took - m.azure }

// measure runs a burst.
func (b *bursts) measure(r row) (m took) {
	_, works := b.works(func() { m.cost = b.measured(func() { noErrors(b.t, r.do()) }) })
	m.azure = b.least(works)
	return m
}

// least is the time that Azure alone needs for its operations on the machines, if as many as possible run at once. The disks
// of a machine are attached to the next machine. So the second operation of a machine begins when the first operations of
// both are over: the disks come from one and need the other.
func (b *bursts) least(works map[string][]time.Duration) (least time.Duration) {
	own := func(n, phase int) time.Duration {
		all := works[b.driverCluster.nodes.of[b.nodes[(n+len(b.nodes))%len(b.nodes)]].Key()]
		if phase < len(all) {
			return all[phase]
		}
		return 0
	}
	for n := range b.nodes {
		first := own(n, 0)
		if second := own(n, 1); second > 0 {
			first = max(first, own(n-1, 0)) + second
		}
		least = max(least, first)
	}
	return least
}

// newBursts returns a driver at a local Azure with Azure's limits. The machines are made before, without latency.
func newBursts(t *testing.T, o core.Options) *bursts {
	t.Helper()
	w := newDriverCluster(t, core.Options{})
	b := &bursts{driverCluster: w, volumes: make([]*csispec.Volume, burstDisks)}
	for n := range burstMachines {
		name := fmt.Sprintf("node%d", n)
		id := w.AddMachine(testkit.VirtualMachine{Name: name})
		_, err := azure.Do(t.Context(), w.Client, azure.Request{Verb: azure.Patch, ID: id,
			Body: []byte(`{"properties":{"hardwareProfile":{"vmSize":"Standard_D32s_v5"}}}`)})
		if err != nil {
			t.Fatal(err)
		}
		w.nodes.of[name], b.nodes = id, append(b.nodes, name)
	}
	o.Throttle = true
	w.Azure = w.Restarted(o)
	return b
}

// start starts the driver. It watches a Kubernetes API, as the program does.
func (b *bursts) start() disk.Config {
	b.t.Helper()
	k := b.watched()
	config := disk.Config{
		Name: disk.DefaultName, Azure: fresh{b.Client.Fresh(), b.Client}, Nodes: k.nodes, Uses: k.uses, Cluster: cluster(),
		Limit: func(context.Context, string) int { return room }, Log: slog.New(slog.DiscardHandler),
	}
	b.driver, b.uses = disk.NewController(config), k.uses
	b.t.Cleanup(b.driver.Close)
	b.calls = calls{b.driver.CreateVolume, b.driver.ControllerPublishVolume, b.driver.ControllerUnpublishVolume}
	return config
}

// burst does the same to all disks, with some milliseconds between two calls.
func (b *bursts) burst(do func(n int) error) []error {
	all := make([]int, burstDisks)
	for n := range all {
		all[n] = n
	}
	return spread(all, apart, do)
}

func (b *bursts) create(n int) error {
	answer, err := b.calls.create(b.t.Context(), request(fmt.Sprintf("pvc-%d", n)))
	b.volumes[n] = answer.GetVolume()
	return err
}

func (b *bursts) attach(n int, node string) error {
	_, err := b.calls.publish(b.t.Context(), &csispec.ControllerPublishVolumeRequest{
		VolumeId: b.volumes[n].GetVolumeId(), NodeId: node, VolumeCapability: writer(), VolumeContext: b.volumes[n].GetVolumeContext(),
	})
	return err
}

func (b *bursts) detach(n int, node string) error {
	_, err := b.calls.unpublish(b.t.Context(), &csispec.ControllerUnpublishVolumeRequest{
		VolumeId: b.volumes[n].GetVolumeId(), NodeId: node,
	})
	return err
}

// TestSpeedOfBursts measures the bursts of TestRealTime in simulated time. Beyond the time of Azure's operations remain the
// wait for the end of the burst, the wait for a poll, and the answer of the poll.
func TestSpeedOfBursts(t *testing.T) {
	beyond := map[string][]time.Duration{}
	var requests []int
	bursts, more := 0, 0 // more are those with another write, because a call came after its machine's burst
	phases := map[string]int{}
	var order []string
	for seed := range *runs {
		synctest.Test(t, func(t *testing.T) {
			b := newBursts(t, core.Options{Latency: 1, Seed: seed})
			t.Cleanup(synctest.Wait)
			b.start()
			synctest.Wait()
			sum := 0
			for _, r := range b.rows() {
				got := b.measure(r)
				sum += got.reads + got.polls + got.writes + got.refused
				if r.phases == 0 {
					continue // a creation whose answer takes minutes is sent again
				}
				if bursts++; got.writes > r.writes {
					more++
				}
				if got.writes < r.writes || got.writes > r.writes+1 || got.refused > 0 {
					t.Errorf("seed %d, %s: %s, want %d writes", seed, r.what, got, r.writes)
				}
				if beyond[r.what] == nil {
					order = append(order, r.what)
				}
				beyond[r.what], phases[r.what] = append(beyond[r.what], got.beyond()), r.phases
			}
			requests = append(requests, sum)
		})
	}
	for _, what := range order {
		half := atMost(t, what, beyond[what], 0.5, time.Duration(phases[what])*700*time.Millisecond)
		// The aim is a second; the order in which goroutines run changes Azure's random times, so the bound is a little more.
		most := atMost(t, what, beyond[what], 0.9, time.Duration(phases[what])*1250*time.Millisecond)
		t.Logf("%s: Azure's own time and %.2f s (median), %.2f s (90 %%), %.2f s (at most)", what, half.Seconds(), most.Seconds(),
			beyond[what][len(beyond[what])-1].Seconds())
	}
	if more*20 > bursts {
		t.Errorf("%d of %d bursts took a write more than one for each machine and phase, want one in twenty", more, bursts)
	}
	slices.Sort(requests)
	half, most := requests[len(requests)/2], requests[len(requests)-1]
	t.Logf("%d requests in all (median), %d (at most, with creations that Azure answers after minutes)", half, most)
	if half > mostRequests {
		t.Errorf("%d requests in all (median), want at most %d", half, mostRequests)
	}
}
