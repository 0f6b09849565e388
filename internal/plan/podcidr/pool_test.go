package podcidr_test

import (
	"errors"
	"math"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/plan/podcidr"
)

func pfx(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// TestPoolAgainstAModel compares the pool with a model that counts the holders of each address.
// Blocks never overlap held ones, an allocation succeeds if the model has room, and released blocks
// are free again.
func TestPoolAgainstAModel(t *testing.T) {
	for _, within := range []netip.Prefix{pfx("10.244.7.0/24"), pfx("fd00:1:2:3:4:5:6:700/120")} {
		rapid.Check(t, func(t *rapid.T) {
			pool := podcidr.NewPool(within)
			model := map[netip.Addr]int{}
			var held []netip.Prefix
			count := func(r netip.Prefix, by int) {
				for a := r.Addr(); r.Contains(a); a = a.Next() {
					model[a] += by
				}
			}
			most := within.Addr().BitLen()
			t.Repeat(map[string]func(*rapid.T){
				"allocate": func(t *rapid.T) {
					bits := rapid.IntRange(within.Bits(), most-2).Draw(t, "bits")
					got, err := pool.Allocate(bits)
					room := hasRoom(model, within, bits)
					if (err == nil) != room || err != nil && !errors.Is(err, podcidr.ErrExhausted) {
						t.Fatalf("/%d: %v, room %v", bits, err, room)
					}
					if err != nil {
						return
					}
					if got.Bits() != bits || got != got.Masked() || !within.Overlaps(got) || !isFree(model, got) {
						t.Fatalf("got %v of %v", got, within)
					}
					count(got, 1)
					held = append(held, got)
				},
				"hold": func(t *rapid.T) {
					at := within.Addr().AsSlice()
					at[len(at)-1] = rapid.Byte().Draw(t, "at")
					a, _ := netip.AddrFromSlice(at)
					r := netip.PrefixFrom(a, rapid.IntRange(within.Bits(), most).Draw(t, "size")).Masked()
					if !pool.Hold(r) {
						t.Fatalf("%v is not in %v", r, within)
					}
					count(r, 1)
					held = append(held, r)
				},
				"release": func(t *rapid.T) {
					if len(held) == 0 {
						t.Skip("nothing is held")
					}
					i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
					pool.Release(held[i])
					count(held[i], -1)
					held = slices.Delete(held, i, i+1)
				},
				"": func(t *rapid.T) {
					n := 0
					for _, holders := range model {
						n += min(holders, 1)
					}
					if math.Abs(pool.Used()-float64(n)/256) > 1e-9 {
						t.Fatalf("used %v, want %d of 256", pool.Used(), n)
					}
				},
			})
		})
	}
}

func isFree(model map[netip.Addr]int, r netip.Prefix) bool {
	for a := r.Addr(); r.Contains(a); a = a.Next() {
		if model[a] > 0 {
			return false
		}
	}
	return true
}

func hasRoom(model map[netip.Addr]int, within netip.Prefix, bits int) bool {
	for a := within.Addr(); within.Contains(a); a = a.Next() {
		if r := netip.PrefixFrom(a, bits); r == r.Masked() && isFree(model, r) {
			return true
		}
	}
	return false
}

func TestReleasedBlocksRest(t *testing.T) {
	pool := podcidr.NewPool(pfx("10.0.0.0/22"))
	var got []string
	for range 3 {
		b, err := pool.Allocate(24)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, b.String())
		pool.Release(b)
	}
	if want := []string{"10.0.0.0/24", "10.0.1.0/24", "10.0.2.0/24"}; !slices.Equal(got, want) {
		t.Error(got)
	}
}

func TestPoolBounds(t *testing.T) {
	pool := podcidr.NewPool(pfx("10.0.0.0/16"))
	for _, bits := range []int{15, 33, -1} {
		if b, err := pool.Allocate(bits); err == nil {
			t.Errorf("/%d: %v", bits, b)
		}
	}
	if pool.Hold(pfx("10.1.0.0/16")) || pool.Hold(pfx("fd00::/8")) || pool.Hold(netip.Prefix{}) {
		t.Error("what is outside was held")
	}
	if !pool.Hold(pfx("10.0.0.0/8")) || pool.Used() != 1 {
		t.Error("a range around the pool's holds all of it")
	}
	if pool.Release(pfx("10.0.0.0/8")); pool.Used() != 0 {
		t.Error("and lets all of it go")
	}
}

// TestLargePools allocates all of the largest usual ranges.
func TestLargePools(t *testing.T) {
	for within, bits := range map[string]int{"10.0.0.0/10": 24, "fd00::/48": 64} {
		pool := podcidr.NewPool(pfx(within))
		const most = 1 << 14
		seen := map[netip.Prefix]bool{}
		for range most {
			b, err := pool.Allocate(bits)
			if err != nil || seen[b] {
				t.Fatal(b, err)
			}
			seen[b] = true
		}
	}
}

func BenchmarkAllocate(b *testing.B) {
	pool := podcidr.NewPool(pfx("10.0.0.0/8"))
	for range 5000 {
		if _, err := pool.Allocate(24); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		r, err := pool.Allocate(24)
		if err != nil {
			b.Fatal(err)
		}
		pool.Release(r)
	}
}
