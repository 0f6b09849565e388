package appgateway

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/smallstep/pkcs7"
	"software.sslmate.com/src/go-pkcs12"

	"kaz/internal/azure/secret"
	"kaz/internal/localazure/behaviour"
)

// certificatesField is the private field of a gateway with the secret parts of its certificates by name in lower case.
const certificatesField = behaviour.Private + "certificates"

// most is the size of a certificate with its key.
const most = 16 << 10

// Certificate is a certificate of a gateway with its secret parts.
type Certificate struct {
	Name           string // in lower case
	Data, Password secret.Text
	// VaultSecret is the id of a secret in a key vault that has the certificate, "" for none.
	VaultSecret string
}

// Certificates returns the certificates in a stored document.
func Certificates(doc behaviour.Object) []Certificate {
	var all []Certificate
	for _, p := range behaviour.Objects(doc, "properties."+certificatesList) {
		kept := behaviour.Sub(behaviour.Sub(doc, certificatesField), Key(p))
		c := Certificate{Name: Key(p), VaultSecret: behaviour.Text(p, "properties.keyVaultSecretId")}
		data, _ := kept["data"].(string)
		password, _ := kept["password"].(string)
		c.Data, c.Password = secret.New(data), secret.New(password)
		all = append(all, c)
	}
	return all
}

// Read reads a certificate with its chain and its key: a PFX in base64, or PEM as key vaults have it.
func Read(text, password string) (tls.Certificate, error) {
	if strings.Contains(text, "-----BEGIN") {
		return tls.X509KeyPair([]byte(text), []byte(text))
	}
	pfx, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(pfx) == 0 {
		return tls.Certificate{}, errors.New("it is no PFX in base64")
	}
	key, leaf, chain, err := pkcs12.DecodeChain(pfx, password)
	if err != nil {
		return tls.Certificate{}, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return tls.Certificate{}, errors.New("its key cannot sign")
	}
	c := tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: signer, Leaf: leaf}
	for _, ca := range chain {
		c.Certificate = append(c.Certificate, ca.Raw)
	}
	return c, nil
}

// ReadRoot reads the data of a trusted certificate: DER or PEM, in base64.
func ReadRoot(data string) (*x509.Certificate, error) {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return nil, errors.New("it is not in base64")
	}
	if block, _ := pem.Decode(raw); block != nil {
		raw = block.Bytes
	}
	return x509.ParseCertificate(raw)
}

// keepCertificates keeps the secret parts of certificates, which no reply shows, in a private field, and writes the public part of each
// certificate. A certificate that is sent without its data keeps what is stored.
func keepCertificates(c *behaviour.Call) error {
	kept := behaviour.Object{}
	stored := behaviour.Sub(c.Old, certificatesField)
	for _, p := range inside(c.ID, c.Doc, certificatesList) {
		name := Key(p.Object)
		had, _ := stored[name].(behaviour.Object)
		data, fromVault := p.text("data"), p.text("keyVaultSecretId")
		switch {
		case fromVault != "":
			if err := checkVaultSecret(c, p, "SslCertificate", fromVault); err != nil {
				return err
			}
		case data != "":
			public, err := publicPart(p)
			if err != nil {
				return err
			}
			kept[name] = behaviour.Object{"data": data, "password": p.text("password"), "public": public}
			behaviour.Set(p.Object, "properties.publicCertData", public)
		case had != nil:
			kept[name] = behaviour.Clone(had)
			behaviour.Set(p.Object, "properties.publicCertData", had["public"])
		default:
			return unverified("ApplicationGatewaySslCertificateDataMustBeSpecified",
				"Data or KeyVaultSecretId must be specified for Certificate %s.", p.id)
		}
	}
	delete(c.Doc, certificatesField)
	if len(kept) > 0 {
		c.Doc[certificatesField] = kept
	}
	return keepRoots(c)
}

// publicPart returns the certificates of a PFX as Azure shows them: a PKCS #7 message without a signature.
func publicPart(p part) (string, error) {
	data := p.text("data")
	if base64.StdEncoding.DecodedLen(len(data)) > most {
		return "", unverified("ApplicationGatewaySslCertificateTooLarge", "Certificate %s has %d bytes. The limit is %d bytes.", p.id,
			base64.StdEncoding.DecodedLen(len(data)), most)
	}
	c, err := Read(data, p.text("password"))
	if err != nil || strings.Contains(data, "-----BEGIN") {
		return "", behaviour.Invalid("ApplicationGatewaySslCertificateInvalidData", "Data or Password for certificate %s is invalid.", p.id)
	}
	message, err := pkcs7.DegenerateCertificate(bytes.Join(c.Certificate, nil))
	if err != nil {
		return "", behaviour.Invalid("ApplicationGatewaySslCertificateInvalidData", "Data or Password for certificate %s is invalid.", p.id)
	}
	return base64.StdEncoding.EncodeToString(message), nil
}

// checkVaultSecret checks a reference to a key vault. The gateway reads it with an identity that users assign.
// Kind names the part in codes.
func checkVaultSecret(c *behaviour.Call, p part, kind, id string) error {
	if !strings.HasPrefix(strings.ToLower(id), "https://") || !strings.Contains(strings.ToLower(id), "/secrets/") {
		return unverified("ApplicationGateway"+kind+"InvalidKeyVaultSecretId",
			"KeyVaultSecretId %q of Certificate %s is invalid. It must have the form https://VAULT/secrets/NAME.", id, p.id)
	}
	if !strings.Contains(strings.ToLower(behaviour.Text(c.Doc, "identity.type")), "userassigned") {
		return unverified("ApplicationGatewayKeyVaultSecretException",
			"Application gateway %s has no user-assigned identity, with which it can read KeyVaultSecretId %q of Certificate %s.", c.ID,
			id, p.id)
	}
	return nil
}

// keepRoots keeps and checks the data of trusted certificates, which are no secrets.
func keepRoots(c *behaviour.Call) error {
	for _, list := range []string{rootsList, clientRootsList, authenticationList} {
		for _, p := range inside(c.ID, c.Doc, list) {
			if id := p.text("keyVaultSecretId"); id != "" {
				if err := checkVaultSecret(c, p, "TrustedRootCertificate", id); err != nil {
					return err
				}
				continue
			}
			if !p.has("data") {
				old := behaviour.Named(c.Old, "properties."+list, p.id.Name())
				behaviour.Default(p.Object, "properties.data", behaviour.Text(old, "properties.data"))
			}
			root, err := ReadRoot(p.text("data"))
			if err != nil {
				return unverified("ApplicationGatewayTrustedRootCertificateInvalidData", "Data for certificate %s is invalid.", p.id)
			}
			if list == clientRootsList {
				behaviour.Set(p.Object, "properties.validatedCertData", base64.StdEncoding.EncodeToString(root.Raw))
				behaviour.Set(p.Object, "properties.clientCertIssuerDN", distinguished(root.Subject))
			}
		}
	}
	return nil
}

// attributes are the short names of a distinguished name's attributes by the last number of their object identifier 2.5.4, as Azure
// writes them.
var attributes = map[int]string{3: "CN", 5: "SERIALNUMBER", 6: "C", 7: "L", 8: "S", 9: "STREET", 10: "O", 11: "OU", 17: "PostalCode"}

// distinguished is a distinguished name from its most specific part on.
func distinguished(name pkix.Name) string {
	var parts []string
	for _, set := range name.ToRDNSequence() {
		for _, a := range set {
			known := ""
			if len(a.Type) == len(standardAttributes)+1 && a.Type[:len(standardAttributes)].Equal(standardAttributes) {
				known = attributes[a.Type[len(standardAttributes)]]
			}
			parts = append(parts, fmt.Sprintf("%s=%v", cmp.Or(known, "OID."+a.Type.String()), a.Value))
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, ", ")
}

// standardAttributes begins the object identifiers of the attributes of names.
var standardAttributes = asn1.ObjectIdentifier{2, 5, 4}
