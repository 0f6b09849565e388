package local

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

	"kaz/internal/emulator/plane/token"
)

// azureKeys are the secrets of a local Azure. They are kept beside its state, so
// that what clients were given stays valid.
type azureKeys struct {
	SigningKey     string `json:"signingKey"` // PEM
	ClientID       string `json:"clientId"`
	ClientObjectID string `json:"clientObjectId"`
	ClientSecret   string `json:"clientSecret"`
	SystemClientID string `json:"systemClientId"`
	SystemObjectID string `json:"systemObjectId"`
	IdentityHeader string `json:"identityHeader"`

	signing *rsa.PrivateKey
}

// keysFileOf is the file of the keys that go with a state file, "" for none.
func keysFileOf(state string) string {
	if state == "" {
		return ""
	}
	return strings.TrimSuffix(state, filepath.Ext(state)) + "-keys.json"
}

// openKeys reads the keys in a file, or makes new ones and writes them to it.
func openKeys(file string) (*azureKeys, error) {
	if file == "" {
		return newKeys()
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		keys, err := newKeys()
		if err != nil {
			return nil, err
		}
		return keys, writeJSON(file, keys)
	}
	if err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %w", err)
	}
	keys := &azureKeys{}
	if err := json.Unmarshal(text, keys); err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %s is not JSON (%w); remove it to get new ones", file, err)
	}
	if err := keys.check(); err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %s: %w; remove it to get new ones", file, err)
	}
	return keys, nil
}

// openKeys opens the keys and keeps the file locked, so that no two local Azures
// write the same state.
func (a *Azure) openKeys(file string) (*azureKeys, error) {
	keys, err := openKeys(file)
	if err != nil || file == "" {
		return keys, err
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // it was only to be locked
		return nil, fmt.Errorf("another local Azure uses this state: %s is locked", file)
	}
	a.closers = append(a.closers, f.Close)
	return keys, nil
}

func newKeys() (*azureKeys, error) {
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("keys of the local Azure: %w", err)
	}
	return &azureKeys{
		SigningKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		ClientID:   newGUID(), ClientObjectID: newGUID(), ClientSecret: rand.Text(),
		SystemClientID: newGUID(), SystemObjectID: newGUID(), IdentityHeader: rand.Text(),
		signing: key,
	}, nil
}

func (k *azureKeys) check() error {
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
		if !guidForm.MatchString(value) {
			return fmt.Errorf("%s %q is not a GUID", name, value)
		}
	}
	return nil
}

// owner is the service principal that everybody is told of.
func (k *azureKeys) owner() token.Application {
	return token.Application{Name: "owner", ClientID: k.ClientID, ObjectID: k.ClientObjectID, Owner: true, Secrets: []string{k.ClientSecret}}
}

// system is the managed identity of whatever runs on this machine.
func (k *azureKeys) system() token.Application {
	return token.Application{Name: "system", ClientID: k.SystemClientID, ObjectID: k.SystemObjectID, Owner: true, Managed: true}
}

func newGUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
