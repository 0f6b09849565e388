package dataplane

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// ErrUnsigned is in the chain of an error about a backup without a valid signature of its cluster.
var ErrUnsigned = errors.New("nothing proves that this cluster made the backup")

// Seal signs backups with a key that is not in the container. The right to write blobs is not enough to make one.
type Seal interface {
	// Sign returns a signature of a text.
	Sign(text []byte) ([]byte, error)
	// Signed reports whether a signature of a text is valid.
	Signed(text, signature []byte) bool
}

// signatureOf is the blob with the signature of a backup, in base64. Machines use the same name.
func signatureOf(name string) string { return name + ".sig" }

// Statement is the text that the signature of a backup signs. It binds the content to the cluster and to the name, so that a backup of
// another cluster, or an older one with the name of a newer one, is none. Machines make the same text.
func Statement(cluster, name string, sum []byte) []byte {
	return fmt.Appendf(nil, "kaz backup of etcd\ncluster: %s\nname: %s\nsha256: %s\n", cluster, name, hex.EncodeToString(sum))
}

// sign writes the signature of a backup with a checksum.
func (c Container) sign(ctx context.Context, name string, sum []byte) error {
	seal, err := c.Seal(ctx)
	if err != nil {
		return err
	}
	signature, err := seal.Sign(Statement(c.Cluster, name, sum))
	if err != nil {
		return fmt.Errorf("signature of backup %s: %w", name, err)
	}
	return c.put(ctx, signatureOf(name), base64.StdEncoding.EncodeToString(signature))
}

// Verify checks that the cluster made a backup. Without a valid signature its error is [ErrUnsigned].
func (c Container) Verify(ctx context.Context, name string) error {
	text, err := c.text(ctx, signatureOf(name))
	if err != nil {
		return err
	}
	if text == "" {
		return fmt.Errorf("backup %s has no signature: %w", name, ErrUnsigned)
	}
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("the signature of backup %s is not base64: %w", name, ErrUnsigned)
	}
	seal, err := c.Seal(ctx)
	if err != nil {
		return err
	}
	sum, err := c.sum(ctx, name)
	if err != nil {
		return err
	}
	if !seal.Signed(Statement(c.Cluster, name, sum), signature) {
		return fmt.Errorf("backup %s has a signature of other content, or of another cluster: %w", name, ErrUnsigned)
	}
	return nil
}

// Adopt signs a backup as it is, although the cluster may not have made it.
func (c Container) Adopt(ctx context.Context, name string) error {
	sum, err := c.sum(ctx, name)
	if err != nil {
		return err
	}
	return c.sign(ctx, name, sum)
}

// sum is the SHA-256 of a blob.
func (c Container) sum(ctx context.Context, name string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+"/"+name, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Ms-Version", blobVersion)
	h := sha256.New()
	if err := c.stream(ctx, storageScope, r, h); err != nil {
		return nil, fmt.Errorf("blob %s/%s: %w", c.URL, name, err)
	}
	return h.Sum(nil), nil
}

// sumOf is the SHA-256 of a file, which is then at its begin.
func sumOf(file *os.File) ([]byte, error) {
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return nil, err
	}
	_, err := file.Seek(0, io.SeekStart)
	return h.Sum(nil), err
}
