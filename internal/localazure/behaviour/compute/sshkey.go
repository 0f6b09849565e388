package compute

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"strings"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

func sshPublicKeys() behaviour.Type {
	style := behaviour.Plain("Microsoft.Compute SSH public keys")
	style.UpperGroup, style.RawNextLink = true, true
	return behaviour.Type{
		Name:    schema.Namespace + "sshPublicKeys",
		Style:   style,
		Where:   behaviour.Located,
		NoState: true,
		NoType:  true,
		Fill: func(c *behaviour.Call) error {
			if err := schema.CheckShape(c); err != nil {
				return err
			}
			if err := schema.CheckZones(c); err != nil {
				return err
			}
			behaviour.Default(c.Doc, "properties", behaviour.Object{})
			key := behaviour.Text(c.Doc, "properties.publicKey")
			if key != "" && !strings.HasPrefix(key, "ssh-rsa ") && !strings.HasPrefix(key, "ssh-ed25519 ") {
				return behaviour.Invalid("InvalidParameter",
					"The value of parameter 'publicKey' of SSH public key '%s' is invalid: it must be an RSA key ('ssh-rsa "+
						"AAAA...') or an Ed25519 key ('ssh-ed25519 AAAA...').", c.ID.Name()).At("publicKey")
			}
			return nil
		},
		Actions: map[string]behaviour.Action{"generateKeyPair": {Do: generateKeyPair}},
	}
}

// generateKeyPair generates a real key, because clients log in with it.
func generateKeyPair(c *behaviour.Call) (any, error) {
	const bits = 3072
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return nil, fmt.Errorf("generate key pair for %s: %w", c.ID, err)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	public := authorizedKey(&key.PublicKey)
	behaviour.Set(c.Doc, "properties.publicKey", public)
	return behaviour.Object{
		"privateKey": strings.ReplaceAll(string(private), "\n", "\r\n"),
		"publicKey":  public,
		"id":         behaviour.Text(c.Old, "id"),
	}, nil
}

// authorizedKey returns a public key in the format of authorized_keys files (RFC 4253 §6.6).
func authorizedKey(key *rsa.PublicKey) string {
	var blob []byte
	add := func(b []byte) {
		blob = binary.BigEndian.AppendUint32(blob, uint32(len(b)))
		blob = append(blob, b...)
	}
	positive := func(b []byte) []byte {
		if len(b) > 0 && b[0]&0x80 != 0 {
			return append([]byte{0}, b...)
		}
		return b
	}
	exponent := binary.BigEndian.AppendUint32(nil, uint32(key.E))
	for len(exponent) > 1 && exponent[0] == 0 {
		exponent = exponent[1:]
	}
	add([]byte("ssh-rsa"))
	add(positive(exponent))
	add(positive(key.N.Bytes()))
	return "ssh-rsa " + base64.StdEncoding.EncodeToString(blob) + " generated-by-azure"
}
