package server

import (
	"github.com/smallstep/pkcs7"
)

// attester is the name in the certificate that signs the documents of machines, as in the public Azure. All machines are in that cloud.
const attester = "metadata.azure.com"

// attest signs the content of a machine's document in the form PKCS #7. The signed text has the content and the certificate.
func (a *authority) attest(content []byte) ([]byte, error) {
	leaf, err := a.named(attester)
	if err != nil {
		return nil, err
	}
	signed, err := pkcs7.NewSignedData(content)
	if err != nil {
		return nil, err
	}
	signed.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
	if err := signed.AddSigner(leaf.Leaf, leaf.PrivateKey, pkcs7.SignerInfoConfig{}); err != nil {
		return nil, err
	}
	return signed.Finish()
}
