package pki

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Unencrypted stands for the key of members that write Secrets as they are. API servers call that provider identity.
const Unencrypted = "identity"

// EncryptionKeys are the keys with which members encrypt Secrets, as the key vault has them. Each line of the text has the use of a key,
// its name and the key. Members write with the key in the line "encrypts", and read with all keys. Without that line they write Secrets
// as they are. Secrets that are not encrypted can always be read.
type EncryptionKeys struct {
	keys []encryptionKey
	// complete is since when all Secrets are written with the first key, and forgotten when former keys were forgotten last. They have the
	// zero time if that is not known, or was never.
	complete, forgotten time.Time
}

// encryptionKey is a key with its use and its name, which API servers write before each Secret. The name is no secret.
type encryptionKey struct{ use, name, key string }

// The uses of keys.
const (
	encrypts = "encrypts"
	reads    = "reads"
	isNext   = "next"
)

// The begins of the lines with times.
const (
	encryptedMark = "every Secret is encrypted with the first key since "
	forgottenMark = "backups need keys that were forgotten if they are of before "
)

var encryptionKeyForm = regexp.MustCompile(`^(encrypts|reads|next) ([a-z0-9-]+) ([A-Za-z0-9+/]{43}=)$`)

// NewEncryptionKeys makes the first key of a new cluster: its members have written nothing yet.
func NewEncryptionKeys(now time.Time) EncryptionKeys {
	return NoEncryptionKeys().WithNext(now).Switched().CompleteSince(now)
}

// NoEncryptionKeys are those of a cluster that does not encrypt Secrets.
func NoEncryptionKeys() EncryptionKeys { return EncryptionKeys{} }

// ParseEncryptionKeys reads the keys that encrypt Secrets. Its errors have nothing of a key.
func ParseEncryptionKeys(text string) (EncryptionKeys, error) {
	var k EncryptionKeys
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if since, ok := strings.CutPrefix(line, encryptedMark); ok {
			k.complete, _ = time.Parse(time.RFC3339, since) // a damaged line counts as none
			continue
		}
		if since, ok := strings.CutPrefix(line, forgottenMark); ok {
			at, err := time.Parse(time.RFC3339, since)
			if err != nil {
				return EncryptionKeys{}, fmt.Errorf("keys that encrypt Secrets: when keys were forgotten is no time: %q", since)
			}
			k.forgotten = at
			continue
		}
		found := encryptionKeyForm.FindStringSubmatch(line)
		if found == nil && line != "" {
			return EncryptionKeys{}, fmt.Errorf("keys that encrypt Secrets: want lines of the form %s", encryptionKeyForm)
		}
		if found != nil {
			k.keys = append(k.keys, encryptionKey{found[1], found[2], found[3]})
		}
	}
	if len(k.keys) == 0 || len(k.of(encrypts)) > 1 || len(k.of(isNext)) > 1 {
		return EncryptionKeys{}, fmt.Errorf("keys that encrypt Secrets: %d of them encrypt and %d are the next ones: want at most one "+
			"each, and a key at least", len(k.of(encrypts)), len(k.of(isNext)))
	}
	return k, nil
}

// of are the names of the keys with a use.
func (k EncryptionKeys) of(use string) []string {
	var all []string
	for _, one := range k.keys {
		if one.use == use {
			all = append(all, one.name)
		}
	}
	return all
}

func firstOr(all []string, other string) string {
	if len(all) == 0 {
		return other
	}
	return all[0]
}

// Encrypts is the name of the key with which members write Secrets, [Unencrypted] for none.
func (k EncryptionKeys) Encrypts() string { return firstOr(k.of(encrypts), Unencrypted) }

// Next is the name of the key that encrypts next, "" for none.
func (k EncryptionKeys) Next() string { return firstOr(k.of(isNext), "") }

// Readable are the names of all keys, the one with which members write first.
func (k EncryptionKeys) Readable() []string {
	return slices.Concat([]string{k.Encrypts()}, k.of(isNext), k.of(reads))
}

// Complete is since when all Secrets are written with the first key, the zero time if it is not known.
func (k EncryptionKeys) Complete() time.Time { return k.complete }

// Forgotten is when former keys were forgotten last, the zero time for never. Backups of before need them.
func (k EncryptionKeys) Forgotten() time.Time { return k.forgotten }

// WithNext makes the key that encrypts next, if there is none. Its name has the day.
func (k EncryptionKeys) WithNext(now time.Time) EncryptionKeys {
	if k.Next() != "" {
		return k
	}
	var key [32]byte
	_, _ = rand.Read(key[:]) // it never fails
	next := encryptionKey{isNext, "key-" + now.UTC().Format("20060102") + "-" + randomText(6), base64.StdEncoding.EncodeToString(key[:])}
	k.keys = append(slices.Clone(k.keys), next)
	k.complete = time.Time{}
	return k
}

// Switched lets the next key encrypt. The former keys stay for reading.
func (k EncryptionKeys) Switched() EncryptionKeys {
	if k.Next() == "" {
		return k
	}
	var now, others []encryptionKey
	for _, one := range k.keys {
		if one.use == isNext {
			now = append(now, encryptionKey{encrypts, one.name, one.key})
		} else {
			others = append(others, encryptionKey{reads, one.name, one.key})
		}
	}
	k.keys, k.complete = append(now, others...), time.Time{}
	return k
}

// CompleteSince notes since when all Secrets are written with the first key.
func (k EncryptionKeys) CompleteSince(at time.Time) EncryptionKeys {
	k.complete = at
	return k
}

// Alone forgets all keys but the one that encrypts, at a time at which no Secret in the cluster needs them.
func (k EncryptionKeys) Alone(at time.Time) EncryptionKeys {
	k.keys = slices.DeleteFunc(slices.Clone(k.keys), func(one encryptionKey) bool { return one.use != encrypts })
	k.complete, k.forgotten = at, at
	return k
}

// Text are the keys as the key vault has them.
func (k EncryptionKeys) Text() string {
	var b strings.Builder
	for _, one := range k.keys {
		fmt.Fprintf(&b, "%s %s %s\n", one.use, one.name, one.key)
	}
	noteTime(&b, encryptedMark, k.complete)
	noteTime(&b, forgottenMark, k.forgotten)
	return b.String()
}

// noteTime writes a line with a time, if it is known.
func noteTime(b *strings.Builder, mark string, at time.Time) {
	if !at.IsZero() {
		fmt.Fprintf(b, "%s%s\n", mark, at.UTC().Format(time.RFC3339))
	}
}
