package server

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"kaz/internal/host/atomicfile"
	"kaz/internal/localazure/identities"
	"kaz/internal/localazure/plane/token"
)

// keys are the secrets of a local Azure. They are stored beside its state, so that tokens and secrets stay valid after a
// restart.
type keys struct {
	SigningKey     string `json:"signingKey"` // PEM
	ClientID       string `json:"clientId"`
	ClientObjectID string `json:"clientObjectId"`
	ClientSecret   string `json:"clientSecret"`
	SystemClientID string `json:"systemClientId"`
	SystemObjectID string `json:"systemObjectId"`
	IdentityHeader string `json:"identityHeader"`

	signing *rsa.PrivateKey
}

// keysFileOf returns the file of the keys beside a state file, "" without a state file.
func keysFileOf(state string) string {
	if state == "" {
		return ""
	}
	return strings.TrimSuffix(state, filepath.Ext(state)) + "-keys.json"
}

// openKeys reads the keys in a file. It creates a missing file with new keys.
func openKeys(file string) (*keys, error) {
	if file == "" {
		return newKeys()
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		k, err := newKeys()
		if err != nil {
			return nil, err
		}
		return k, atomicfile.WriteJSON(file, k)
	}
	if err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %w", err)
	}
	k := &keys{}
	if err := json.Unmarshal(text, k); err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %s is not JSON (%w); remove it to get new ones", file, err)
	}
	if err := k.check(); err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %s: %w; remove it to get new ones", file, err)
	}
	return k, nil
}

// lockKeys opens the keys and locks their file until unlock, so that one local Azure at a time writes the state.
func lockKeys(file string) (k *keys, unlock func() error, err error) {
	k, err = openKeys(file)
	if err != nil || file == "" {
		return k, func() error { return nil }, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("keys of the local Azure: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // it was opened only for the lock
		return nil, nil, fmt.Errorf("another local Azure uses this state: %s is locked", file)
	}
	return k, f.Close, nil
}

func newKeys() (*keys, error) {
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %w", err)
	}
	return &keys{
		SigningKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		ClientID:   newGUID(), ClientObjectID: newGUID(), ClientSecret: rand.Text(),
		SystemClientID: newGUID(), SystemObjectID: newGUID(), IdentityHeader: rand.Text(),
		signing: key,
	}, nil
}

func (k *keys) check() error {
	block, _ := pem.Decode([]byte(k.SigningKey))
	if block == nil {
		return errors.New("signingKey is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("signingKey: %w", err)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return errors.New("signingKey is not an RSA key")
	}
	k.signing = key
	for name, value := range map[string]string{"clientSecret": k.ClientSecret, "identityHeader": k.IdentityHeader} {
		if value == "" {
			return fmt.Errorf("%s is missing", name)
		}
	}
	for name, value := range map[string]string{
		"clientId": k.ClientID, "clientObjectId": k.ClientObjectID, "systemClientId": k.SystemClientID, "systemObjectId": k.SystemObjectID,
	} {
		if !identities.IsGUID(value) {
			return fmt.Errorf("%s %q is not a GUID", name, value)
		}
	}
	return nil
}

// owner returns the service principal with all rights, which Info describes.
func (k *keys) owner() token.Application {
	return token.Application{Name: "owner", ClientID: k.ClientID, ObjectID: k.ClientObjectID, Owner: true,
		Secrets: []string{k.ClientSecret}}
}

// system returns the managed identity of programs on this machine.
func (k *keys) system() token.Application {
	return token.Application{Name: "system", ClientID: k.SystemClientID, ObjectID: k.SystemObjectID, Owner: true, Managed: true}
}

func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
