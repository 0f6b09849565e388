package emulator

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

// random is the seeded source of everything that Azure draws.
type random struct {
	mu  sync.Mutex
	pcg *rand.PCG
	src *rand.Rand
}

func newRandom(seed uint64) *random {
	pcg := rand.NewPCG(seed, 0x6b617a)
	return &random{pcg: pcg, src: rand.New(pcg)}
}

// save and load let a restored state go on with the same draws.
func (r *random) save() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pcg.MarshalBinary()
}

func (r *random) load(state []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pcg.UnmarshalBinary(state)
}

func (r *random) guid() string {
	r.mu.Lock()
	a, b := r.src.Uint64(), r.src.Uint64()
	r.mu.Unlock()
	const version4, variant = 0x4000, 0x8000
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, version4|a&0xfff, variant|b>>48&0x3fff, b&0xffffffffffff)
}

func (r *random) intn(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.IntN(n)
}

func (r *random) normal() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.NormFloat64()
}

func (r *random) float() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Float64()
}
