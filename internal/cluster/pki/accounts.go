package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AccountKeys are the keys of service accounts as the key vault has them. The public keys come first: API servers check
// tokens with them. The private keys follow. The first private key signs, and a second one will sign next. Machines take the
// first private key only.
type AccountKeys struct {
	public  []accountKey
	private []accountKey
	// complete is since when every member signs with the first private key, the zero time if it is not known.
	complete time.Time
}

// accountKey is a key in PEM with the ID that API servers give it.
type accountKey struct {
	id    string
	block *pem.Block
}

// completeMark begins the line that says since when every member signs with the first key. It is outside of the blocks, so that
// programs which read PEM pass it over.
const completeMark = "every member signs with the first key since "

// ParseAccountKeys reads the keys of service accounts. Its errors have nothing of a key.
func ParseAccountKeys(text string) (AccountKeys, error) {
	var k AccountKeys
	for line := range strings.Lines(text) {
		if since, ok := strings.CutPrefix(strings.TrimSpace(line), completeMark); ok {
			k.complete, _ = time.Parse(time.RFC3339, since) // a damaged line counts as none
		}
	}
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "PUBLIC KEY":
			public, err := x509.ParsePKIXPublicKey(block.Bytes)
			if err != nil {
				return AccountKeys{}, fmt.Errorf("public key of service accounts: %w", err)
			}
			k.public = append(k.public, accountKey{keyID(public), block})
		case "PRIVATE KEY":
			private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			signer, ok := private.(crypto.Signer)
			if err != nil || !ok {
				return AccountKeys{}, errors.New("private key of service accounts: want a key for signatures in PKCS #8")
			}
			k.private = append(k.private, accountKey{keyID(signer.Public()), block})
		}
	}
	if len(k.private) == 0 || !slices.Contains(k.Accepted(), k.Signs()) {
		return AccountKeys{}, errors.New("keys of service accounts: want a private key and its public key in PEM")
	}
	return k, nil
}

// keyID is the ID that API servers give a key: tokens name it in their header. It is no secret.
func keyID(public crypto.PublicKey) string {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Signs is the ID of the key that signs tokens.
func (k AccountKeys) Signs() string { return k.private[0].id }

// Next is the ID of the key that signs next, "" for none.
func (k AccountKeys) Next() string {
	if len(k.private) == 1 {
		return ""
	}
	return k.private[1].id
}

// Accepted are the IDs of the keys with which API servers check tokens.
func (k AccountKeys) Accepted() []string {
	var all []string
	for _, one := range k.public {
		all = append(all, one.id)
	}
	return all
}

// Complete is since when every member signs with the first private key, the zero time if it is not known.
func (k AccountKeys) Complete() time.Time { return k.complete }

// WithNext makes the key that signs next, if there is none. API servers accept its tokens, and nothing signs with it yet.
func (k AccountKeys) WithNext() (AccountKeys, error) {
	if k.Next() != "" {
		return k, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return k, fmt.Errorf("key of service accounts: %w", err)
	}
	text, err := accountBundle(key)
	if err != nil {
		return k, err
	}
	next, err := ParseAccountKeys(string(text))
	if err != nil {
		return k, err
	}
	return AccountKeys{public: slices.Concat(k.public, next.public), private: slices.Concat(k.private[:1], next.private)}, nil
}

// Switched lets the next key sign. Tokens of the former keys are accepted.
func (k AccountKeys) Switched() AccountKeys {
	next := k.private[len(k.private)-1]
	isNext := func(one accountKey) bool { return one.id == next.id }
	first := k.public[slices.IndexFunc(k.public, isNext)]
	others := slices.DeleteFunc(slices.Clone(k.public), isNext)
	return AccountKeys{public: append([]accountKey{first}, others...), private: []accountKey{next}}
}

// CompleteSince notes since when every member signs with the first private key.
func (k AccountKeys) CompleteSince(at time.Time) AccountKeys {
	k.complete = at
	return k
}

// Alone forgets all keys but the one that signs.
func (k AccountKeys) Alone() AccountKeys {
	i := slices.IndexFunc(k.public, func(one accountKey) bool { return one.id == k.Signs() })
	return AccountKeys{public: k.public[i : i+1], private: k.private[:1], complete: k.complete}
}

// Text are the keys as the key vault has them.
func (k AccountKeys) Text() string {
	var b bytes.Buffer
	for _, one := range slices.Concat(k.public, k.private) {
		b.Write(pem.EncodeToMemory(one.block))
	}
	if !k.complete.IsZero() {
		fmt.Fprintf(&b, "%s%s\n", completeMark, k.complete.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// accountBundle is a key of service accounts in PEM: its public key and the key.
func accountBundle(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	private, err := keyPEM(key)
	return append(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), private...), err
}
