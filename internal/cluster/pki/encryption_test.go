package pki

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestEncryptionKeys checks the keys of a cluster that encrypts Secrets from its begin, through a rotation.
func TestEncryptionKeys(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	first := NewEncryptionKeys(now)
	if one := first.Encrypts(); !strings.HasPrefix(one, "key-20300102-") || first.Next() != "" || !first.Complete().Equal(now) ||
		!slices.Equal(first.Readable(), []string{one}) {
		t.Errorf("a new cluster: %v", first.Readable())
	}
	next := again(t, first.WithNext(now))
	if next.Encrypts() != first.Encrypts() || next.Next() == "" || !next.Complete().IsZero() ||
		!slices.Equal(next.Readable(), []string{first.Encrypts(), next.Next()}) || next.WithNext(now).Next() != next.Next() {
		t.Errorf("with the next key: %v", next.Readable())
	}
	used := again(t, next.Switched())
	if used.Encrypts() != next.Next() || used.Next() != "" || !slices.Equal(used.Readable(), []string{next.Next(), first.Encrypts()}) ||
		used.Switched().Text() != used.Text() {
		t.Errorf("the next key is used: %v", used.Readable())
	}
	alone := again(t, used.Alone(now.Add(time.Hour)))
	if !slices.Equal(alone.Readable(), []string{next.Next()}) || !alone.Forgotten().Equal(now.Add(time.Hour)) || !used.Forgotten().IsZero() ||
		len(strings.Fields(alone.Text())[2]) != 44 {
		t.Errorf("the former key is forgotten: %v at %v", alone.Readable(), alone.Forgotten())
	}
}

// TestFirstEncryptionKey checks the keys of a cluster that begins to encrypt Secrets.
func TestFirstEncryptionKey(t *testing.T) {
	now := time.Now()
	none := NoEncryptionKeys()
	next := again(t, none.WithNext(now))
	used := again(t, next.Switched())
	if none.Encrypts() != Unencrypted || next.Encrypts() != Unencrypted || used.Encrypts() != next.Next() ||
		!slices.Equal(next.Readable(), []string{Unencrypted, next.Next()}) || !slices.Equal(used.Readable(), []string{next.Next()}) {
		t.Errorf("%v, then %v, then %v", none.Readable(), next.Readable(), used.Readable())
	}
}

// again reads keys as the key vault has them.
func again(t *testing.T, k EncryptionKeys) EncryptionKeys {
	t.Helper()
	read, err := ParseEncryptionKeys(k.Text())
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestBadEncryptionKeys checks that what is no secret of keys is refused, without a key in the error.
func TestBadEncryptionKeys(t *testing.T) {
	key := strings.Repeat("A", 43) + "="
	for _, text := range []string{"", "\n", "encrypts a short", "encrypts A " + key, "other a " + key, "encrypts a " + key + "\nencrypts b " + key,
		"next a " + key + "\nnext b " + key, forgottenMark + "never\nencrypts a " + key, "encrypts a " + key + " b"} {
		if _, err := ParseEncryptionKeys(text); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
