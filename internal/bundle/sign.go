package bundle

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// ParsePrivateKey reads a key for signatures: PEM with an ECDSA key on the curve P-256, or an Ed25519 key. Errors do not show the text.
func ParsePrivateKey(text []byte) (crypto.Signer, error) {
	block, rest := pem.Decode(text)
	if block != nil && block.Type == "EC PARAMETERS" { // as openssl ecparam writes them before the key
		block, _ = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("it has no PEM block: want PRIVATE KEY or EC PRIVATE KEY")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("it has a PEM block of the type %q: want PRIVATE KEY or EC PRIVATE KEY, not encrypted", block.Type)
	}
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("it has a key of the type %T: want ECDSA P-256 or Ed25519", key)
	}
	return signer, checkPublic(signer.Public())
}

// ParsePublicKey reads the key with which a signature is verified, as PEM.
func ParsePublicKey(text []byte) (crypto.PublicKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PUBLIC KEY" {
		return nil, errors.New("it has no PEM block PUBLIC KEY")
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	return key, checkPublic(key)
}

func checkPublic(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return nil
		}
	case ed25519.PublicKey:
		return nil
	}
	return fmt.Errorf("it has a key of the type %T: want ECDSA P-256 or Ed25519", key)
}

// sign signs a text. The signature is in base64, as cosign's sign-blob writes it. The same key and text give the same signature.
func sign(key crypto.Signer, text []byte) ([]byte, error) {
	var signature []byte
	var err error
	if _, isEd := key.Public().(ed25519.PublicKey); isEd {
		signature, err = key.Sign(nil, text, crypto.Hash(0))
	} else {
		sum := sha256.Sum256(text)
		signature, err = key.Sign(nil, sum[:], crypto.SHA256)
	}
	return []byte(base64.StdEncoding.EncodeToString(signature) + "\n"), err
}

// verify returns an error if a signature is not that of a text.
func verify(key crypto.PublicKey, text, signature []byte) error {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(signature)))
	if err != nil {
		return fmt.Errorf("%s is no signature in base64: %w", signaturePath, err)
	}
	good := false
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		sum := sha256.Sum256(text)
		good = ecdsa.VerifyASN1(k, sum[:], raw)
	case ed25519.PublicKey:
		good = ed25519.Verify(k, text, raw)
	}
	if !good {
		return fmt.Errorf("%s is not a signature of %s by this key: the bundle was changed, or another key signed it",
			signaturePath, manifestPath)
	}
	return nil
}
