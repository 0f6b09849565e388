package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"kaz/internal/azure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func over(t interface{ Fatal(...any) }, client Client, o Options) *Cache {
	c, err := Over(client, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func always() Options { return Options{TTL: map[string]time.Duration{"": time.Minute}} }

func lb(name string) azure.ID  { return group.Resource("Microsoft.Network/loadBalancers", name) }
func pip(name string) azure.ID { return group.Resource("Microsoft.Network/publicIPAddresses", name) }

var lbs = azure.Query{Scope: group, Type: "Microsoft.Network/loadBalancers"}

func referring(ids ...azure.ID) azure.Document {
	text, err := json.Marshal(map[string]any{"refs": ids})
	if err != nil {
		panic(err)
	}
	return text
}

// references says which types refer to which in Azure, as far as the references show at both ends.
func references() map[string][]string {
	return map[string][]string{
		"Microsoft.Network/loadBalancers":        {"Microsoft.Network/publicIPAddresses", "Microsoft.Network/virtualNetworks"},
		"Microsoft.Network/loadBalancers/probes": nil,
		"Microsoft.Network/publicIPAddresses":    {"Microsoft.Network/publicIPPrefixes"},
		"Microsoft.Network/publicIPPrefixes":     nil,
		"Microsoft.Network/natGateways":          {"Microsoft.Network/publicIPAddresses", "Microsoft.Network/publicIPPrefixes"},
		"Microsoft.Network/virtualNetworks": {"Microsoft.Network/networkSecurityGroups", "Microsoft.Network/routeTables",
			"Microsoft.Network/natGateways"},
		"Microsoft.Network/virtualNetworks/subnets": {"Microsoft.Network/networkSecurityGroups", "Microsoft.Network/routeTables",
			"Microsoft.Network/natGateways"},
		"Microsoft.Network/networkSecurityGroups": nil,
		"Microsoft.Network/routeTables":           nil,
		"Microsoft.Network/networkInterfaces": {"Microsoft.Network/virtualNetworks", "Microsoft.Network/loadBalancers",
			"Microsoft.Network/publicIPAddresses", "Microsoft.Network/networkSecurityGroups"},
		"Microsoft.Network/privateEndpoints": {"Microsoft.Network/privateLinkServices", "Microsoft.Network/virtualNetworks",
			"Microsoft.Storage/storageAccounts"},
		"Microsoft.Network/privateLinkServices": {"Microsoft.Network/loadBalancers", "Microsoft.Network/virtualNetworks"},
		"Microsoft.Compute/virtualMachines": {"Microsoft.Compute/disks", "Microsoft.Network/networkInterfaces",
			"Microsoft.Compute/availabilitySets", "Microsoft.Compute/virtualMachineScaleSets"},
		"Microsoft.Compute/virtualMachineScaleSets": {"Microsoft.Network/loadBalancers", "Microsoft.Network/virtualNetworks",
			"Microsoft.Network/networkSecurityGroups", "Microsoft.Compute/disks"},
		"Microsoft.Compute/disks":            {"Microsoft.Compute/snapshots"},
		"Microsoft.Compute/snapshots":        nil,
		"Microsoft.Compute/availabilitySets": nil,
		"Microsoft.Storage/storageAccounts":  nil,
		"Contoso.Rockets/rockets":            {"Microsoft.Network/loadBalancers", "Microsoft.Compute/disks"},
	}
}

// someIDs are two resources of each type.
func someIDs() (ids []azure.ID, byType map[string][]azure.ID) {
	byType = map[string][]azure.ID{}
	for typ := range references() {
		for _, name := range []string{"a", "b"} {
			id := group.Resource(typ, name)
			if strings.Count(typ, "/") == 2 {
				parent, kind := typ[:strings.LastIndexByte(typ, '/')], typ[strings.LastIndexByte(typ, '/')+1:]
				id = group.Resource(parent, name).Child(kind, "c")
			}
			byType[typ] = append(byType[typ], id)
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, byType
}

// After any write through the cache, a read through the cache gives what Azure has.
func TestNothingIsStaleAfterOurOwnWrites(t *testing.T) {
	ids, byType := someIDs()
	rapid.Check(t, func(t *rapid.T) {
		client := newCloud()
		c := over(t, client, always())
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			id := rapid.SampledFrom(ids).Draw(t, "id")
			var err error
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1, 2, 3:
				var refs []azure.ID
				for _, kind := range references()[id.Type()] {
					refs = append(refs, rapid.SampledFrom(byType[kind]).Draw(t, "ref"))
				}
				_, err = c.Put(t.Context(), azure.Write{ID: id, Body: referring(refs...)})
			case 4:
				err = c.Delete(t.Context(), id)
			case 5:
				_, err = c.Post(t.Context(), id, "restart", nil)
			case 6:
				_, err = c.Fresh().List(t.Context(), azure.Query{Scope: group, Type: id.Type()})
			default:
				_, _ = c.Get(t.Context(), id) // to fill the cache; not there is fine
				_, err = c.List(t.Context(), azure.Query{Scope: group, Type: id.Type()})
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				compare(t, c, client, id)
			}
		}
	})
}

func compare(t *rapid.T, c *Cache, client *cloud, id azure.ID) {
	got, gotErr := c.Get(t.Context(), id)
	want, wantErr := client.Get(t.Context(), id)
	if string(got) != string(want) || azure.IsNotFound(gotErr) != azure.IsNotFound(wantErr) {
		t.Fatalf("%s\n read %s %v\n  has %s %v", id, got, gotErr, want, wantErr)
	}
	q := azure.Query{Scope: group, Type: id.Type()}
	gotList, err := c.List(t.Context(), q)
	wantList, _ := client.List(t.Context(), q)
	if err != nil || fmt.Sprintf("%s", gotList) != fmt.Sprintf("%s", wantList) {
		t.Fatalf("list of %s\n read %s %v\n  has %s", q.Type, gotList, err, wantList)
	}
}

// Many callers at once: a read that begins after a write has ended sees the write.
func TestReadsSeeEarlierWrites(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			client := newCloud()
			client.random = rand.New(rand.NewPCG(seed, 1))
			c := over(t, client, always())
			var mu sync.Mutex
			ended := map[azure.ID]int{} // version of the last write that has ended
			var wg sync.WaitGroup
			for worker := range 8 {
				random := rand.New(rand.NewPCG(seed, uint64(worker)+2))
				wg.Go(func() {
					for range 60 {
						id := lb(strconv.Itoa(random.IntN(3)))
						mu.Lock()
						least := ended[id]
						mu.Unlock()
						var doc azure.Document
						var err error
						what := random.IntN(4)
						switch what {
						case 0:
							doc, err = c.Put(t.Context(), azure.Write{ID: id, Body: referring()})
						case 1:
							doc, err = c.Fresh().Get(t.Context(), id)
						default:
							doc, err = c.Get(t.Context(), id)
						}
						if azure.IsNotFound(err) && least == 0 {
							continue
						}
						version, bad := strconv.Atoi(doc.Etag())
						if err != nil || bad != nil || version < least {
							t.Errorf("seed %d: %s at version %q, %v, after version %d was written", seed, id, doc.Etag(), err, least)
							return
						}
						if what == 0 {
							mu.Lock()
							ended[id] = max(ended[id], version)
							mu.Unlock()
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestEntriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newCloud()
		c := over(t, client,
			Options{TTL: map[string]time.Duration{"microsoft.network": time.Minute, "Microsoft.Network/publicIPAddresses": 0}})
		for _, id := range []azure.ID{lb("l"), pip("p")} {
			if _, err := azure.ByVerb(client).Put(t.Context(), azure.Write{ID: id, Body: referring()}); err != nil {
				t.Fatal(err)
			}
		}
		get := func(id azure.ID) {
			t.Helper()
			if _, err := c.Get(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			get(lb("l"))
			get(azure.ID(strings.ToUpper(string(lb("l"))))) // the same in Azure's eyes
			get(pip("p"))
			<-time.After(25 * time.Second)
		}
		if n := client.read(lb("l").Key()); n != 1 {
			t.Errorf("%d reads within a minute, want 1", n)
		}
		if n := client.read(pip("p").Key()); n != 3 {
			t.Errorf("%d reads of a type that is not kept, want 3", n)
		}
		get(lb("l"))
		if n := client.read(lb("l").Key()); n != 2 {
			t.Errorf("%d reads after a minute, want 2", n)
		}
	})
}

func TestFreshReadsPast(t *testing.T) {
	client := newCloud()
	c := over(t, client, always())
	write := func() {
		if _, err := azure.ByVerb(client).Put(t.Context(), azure.Write{ID: lb("l"), Body: referring()}); err != nil { // by another client
			t.Fatal(err)
		}
	}
	etag := func(r azure.Reader) string {
		doc, err := r.Get(t.Context(), lb("l"))
		if err != nil {
			t.Fatal(err)
		}
		return doc.Etag()
	}
	write()
	first := etag(c)
	write()
	if etag(c) != first {
		t.Error("a kept document was not used")
	}
	second := etag(c.Fresh())
	if second == first {
		t.Error("Fresh answered from the cache")
	}
	if etag(c) != second {
		t.Error("what Fresh found was not kept")
	}
}

func TestWritesAnswerReads(t *testing.T) {
	client := newCloud()
	c := over(t, client, always())
	if _, err := c.Put(t.Context(), azure.Write{ID: lb("l"), Body: referring()}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), lb("l")); err != nil || client.read(lb("l").Key()) != 0 {
		t.Errorf("%v after %d reads, want the answer of the write", err, client.read(lb("l").Key()))
	}
	client.refuse = &azure.Error{Kind: azure.Changed}
	if _, err := c.Put(t.Context(), azure.Write{ID: lb("l"), Body: referring(), IfMatch: "0"}); azure.KindOf(err) != azure.Changed {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), lb("l")); err != nil || client.read(lb("l").Key()) != 1 {
		t.Errorf("%v after %d reads, want one after a refused precondition", err, client.read(lb("l").Key()))
	}
	if _, err := c.Post(t.Context(), lb("l"), "listKeys", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), lb("l")); err != nil || client.read(lb("l").Key()) != 1 {
		t.Errorf("%v after %d reads, want none after an action that only reads", err, client.read(lb("l").Key()))
	}
}

// Equal reads at the same time are one read. If one caller gives up, the others still get the result.
func TestReadsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newCloud()
		if _, err := azure.ByVerb(client).Put(t.Context(), azure.Write{ID: lb("l"), Body: referring()}); err != nil {
			t.Fatal(err)
		}
		client.random = rand.New(rand.NewPCG(1, 1))
		registry := prometheus.NewRegistry()
		o := always()
		o.Registerer = registry
		c := over(t, client, o)
		over(t, client, o) // a second one counts with the first
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.List(ctx, lbs); !errors.Is(err, context.Canceled) || azure.KindOf(err) != azure.Canceled {
				t.Errorf("the cancelled caller got %v", err)
			}
		})
		synctest.Wait()
		for range 20 {
			wg.Go(func() {
				if docs, err := c.List(t.Context(), lbs); err != nil || len(docs) != 1 {
					t.Errorf("%s %v", docs, err)
				}
			})
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		if n := client.read(lbs.Type); n != 1 {
			t.Errorf("%d reads, want 1", n)
		}
		// If the only caller gives up, the read ends too. The next caller begins a new one.
		ctx, cancel = context.WithCancel(t.Context())
		wg.Go(func() { _, _ = c.Get(ctx, lb("l")) })
		synctest.Wait()
		cancel()
		if _, err := c.Get(t.Context(), lb("l")); err != nil {
			t.Error(err)
		}
		wg.Wait()
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 2 {
			t.Errorf("metrics %v %v", families, err)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	client := newCloud()
	o := always()
	o.Bytes = 20_000
	c := over(t, client, o)
	for i := range 1000 {
		if _, err := c.Put(t.Context(),
			azure.Write{ID: lb(strconv.Itoa(i)), Body: referring(pip(strings.Repeat("x", i%100)))}); err != nil {
			t.Fatal(err)
		}
		if c.kept.bytes > o.Bytes || len(c.kept.entries) != c.kept.recent.Len() {
			t.Fatalf("%d bytes in %d entries", c.kept.bytes, len(c.kept.entries))
		}
	}
	if len(c.kept.entries) < 10 {
		t.Errorf("only %d entries are kept", len(c.kept.entries))
	}
	if _, err := c.List(t.Context(), lbs); err != nil { // larger than all there is
		t.Fatal(err)
	}
	if c.kept.bytes > o.Bytes {
		t.Errorf("%d bytes", c.kept.bytes)
	}
}

func TestListsAreTheCallersOwn(t *testing.T) {
	client := newCloud()
	c := over(t, client, always())
	for _, name := range []string{"a", "b"} {
		if _, err := c.Put(t.Context(), azure.Write{ID: lb(name), Body: referring()}); err != nil {
			t.Fatal(err)
		}
	}
	docs, err := c.List(t.Context(), lbs)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(docs)
	again, err := c.List(t.Context(), lbs)
	if err != nil || again[0].ID() != lb("a") {
		t.Errorf("%s %v", again, err)
	}
}

func TestOverRefuses(t *testing.T) {
	if _, err := Over(newCloud(), Options{TTL: map[string]time.Duration{"x": -1}}); err == nil {
		t.Error("a negative time to live was taken")
	}
}
