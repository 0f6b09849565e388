package function

import (
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Constants of the hash behind uniqueString. They are those of MurmurHash3 for 128 bits
// on 32-bit machines, with two of its four words.
const (
	murmur1, murmur2 = 0x239b961b, 0xab0e9789
	add1, add2       = 0x561ccd1b, 0x0bcaa747
	mix1, mix2       = 0x85ebca6b, 0xc2b2ae35
)

// unique is the hash that uniqueString shows: 13 characters of base 32. Azure does not
// document it; the tests have values that Azure gave.
func unique(text string) string {
	const alphabet, symbols, symbolBits = "abcdefghijklmnopqrstuvwxyz234567", 13, 5
	h := murmur(text)
	var out [symbols]byte
	for i := range out {
		out[i] = alphabet[h>>(64-symbolBits)]
		h <<= symbolBits
	}
	return string(out[:])
}

func murmur(text string) uint64 {
	data := []byte(text)
	length := uint32(len(data))
	var h1, h2 uint32
	for ; len(data) >= 8; data = data[8:] {
		h1 = half(h1, binary.LittleEndian.Uint32(data), 15, murmur1, murmur2)
		h1 = (bits.RotateLeft32(h1, 19)+h2)*5 + add1
		h2 = half(h2, binary.LittleEndian.Uint32(data[4:]), 17, murmur2, murmur1)
		h2 = (bits.RotateLeft32(h2, 13)+h1)*5 + add2
	}
	var tail [8]byte
	copy(tail[:], data)
	h1 = half(h1, binary.LittleEndian.Uint32(tail[:]), 15, murmur1, murmur2)
	h2 = half(h2, binary.LittleEndian.Uint32(tail[4:]), 17, murmur2, murmur1)
	h1, h2 = h1^length, h2^length
	h1 += h2
	h2 += h1
	h1, h2 = mix(h1), mix(h2)
	h1 += h2
	h2 += h1
	return uint64(h2)<<32 | uint64(h1)
}

// half mixes four bytes into one half of the hash; no bytes change nothing.
func half(h, k uint32, turn int, before, after uint32) uint32 {
	return h ^ bits.RotateLeft32(k*before, turn)*after
}

func mix(h uint32) uint32 {
	h = (h ^ h>>16) * mix1
	h = (h ^ h>>13) * mix2
	return h ^ h>>16
}

// guidNamespace is the namespace of the GUIDs that Azure makes of names.
const guidNamespace = "\x11\xfb\x06\xfb\x71\x2d\x4d\xdd\x98\xc7\xe7\x1b\xbd\x58\x88\x30"

// guid is the GUID of a name by RFC 4122, section 4.3, version 5.
func guid(name string) string {
	b := sha1.Sum([]byte(guidNamespace + name))
	b[6], b[8] = b[6]&0x0f|0x50, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
