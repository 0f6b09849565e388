// Package random is the seeded source of everything that the local Azure draws.
// Layer L2: the standard library only.
package random

import (
	"fmt"
	"math/rand/v2"
	"sync"
)

// Source draws values. The same seed gives the same values. It is safe for use by
// several goroutines.
type Source struct {
	mu  sync.Mutex
	pcg *rand.PCG
	src *rand.Rand
}

// New returns the source of a seed.
func New(seed uint64) *Source {
	pcg := rand.NewPCG(seed, 0x6b617a)
	return &Source{pcg: pcg, src: rand.New(pcg)}
}

// Save returns the state of the source, from which Load continues.
func (r *Source) Save() ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pcg.MarshalBinary()
}

// Load continues with the draws of a saved state.
func (r *Source) Load(state []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pcg.UnmarshalBinary(state)
}

// GUID draws a random GUID of version 4.
func (r *Source) GUID() string {
	r.mu.Lock()
	a, b := r.src.Uint64(), r.src.Uint64()
	r.mu.Unlock()
	const version4, variant = 0x4000, 0x8000
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", a>>32, a>>16&0xffff, version4|a&0xfff, variant|b>>48&0x3fff, b&0xffffffffffff)
}

// Intn draws a number from 0 to n-1.
func (r *Source) Intn(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.IntN(n)
}

// Normal draws from the standard normal distribution.
func (r *Source) Normal() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.NormFloat64()
}

// Float draws a number from 0 up to, and not including, 1.
func (r *Source) Float() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Float64()
}
