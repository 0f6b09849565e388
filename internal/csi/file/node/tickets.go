package node

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure/secret"
	"kaz/internal/csi"
)

// Tickets gets Kerberos tickets of file servers, with which the kernel mounts by SMB.
type Tickets interface {
	// Get gets a ticket of a host. Without a token it is for the identity of the machine.
	Get(ctx context.Context, t Ticket) error
	// Forget removes what is kept for a volume.
	Forget(volume string) error
}

// Ticket is a request for a ticket.
type Ticket struct {
	Volume, Account, Host string
	ClientID, TenantID    string
	Token                 secret.Text // of the pod's service account
}

// Helper gets tickets with the program azfilesauthmanager, which renews them too.
type Helper struct {
	// Program is azfilesauthmanager if it is empty.
	Program string
	// Dir has the tokens of workload identities.
	Dir string
	// Authority is the URL of Entra ID.
	Authority string
}

// storageResource is the resource of tokens for storage.
const storageResource = "https://storage.azure.com/"

// The shapes of what becomes arguments of the program and the name of a token's file.
var (
	plain  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)
	tenant = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9.-]*)?$`)
)

// ticketAtMost bounds the program, and outputAtMost how long its output stays open after its end.
const (
	ticketAtMost = 60 * time.Second
	outputAtMost = 5 * time.Second
)

// Get implements [Tickets]. A token goes into a file that the program reads.
func (h Helper) Get(ctx context.Context, t Ticket) error {
	args := []string{"set", "https://" + t.Host}
	if t.ClientID != "" && !plain.MatchString(t.ClientID) || !tenant.MatchString(t.TenantID) {
		return csi.Invalid("clientID %.64q, tenantID %.64q: want letters, digits, - and, in a tenant, dots", t.ClientID, t.TenantID)
	}
	if t.Token.IsZero() {
		args = append(args, "--imds-client-id", t.ClientID)
	} else {
		if !plain.MatchString(t.ClientID) || !plain.MatchString(t.Account) {
			return fmt.Errorf("clientID %q, storage account %q: want letters, digits and -", t.ClientID, t.Account)
		}
		path := filepath.Join(h.Dir, t.ClientID+"-"+t.Account+"-"+hash(t.Volume))
		if err := os.MkdirAll(h.Dir, directoryMode); err != nil {
			return err
		}
		const ownerOnly = 0o600
		if err := os.WriteFile(path, []byte(t.Token.Reveal()), ownerOnly); err != nil {
			return err
		}
		args = append(args, "--workload-identity", "--tenant-id", t.TenantID, "--client-id", t.ClientID, "--token-file", path,
			"--authority-host", h.Authority, "--resource", storageResource)
	}
	ctx, end := context.WithTimeout(ctx, ticketAtMost)
	defer end()
	cmd := exec.CommandContext(ctx, cmp.Or(h.Program, "azfilesauthmanager"), args...)
	cmd.WaitDelay = outputAtMost // a child of the program can keep it open
	output, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return status.Errorf(codes.FailedPrecondition, "azfilesauthmanager is not installed: mounts with an identity need the package "+
			"azfilesauth in the driver's image")
	}
	if err != nil {
		return fmt.Errorf("azfilesauthmanager: %w: %s", err, output)
	}
	return nil
}

// hash names the files of a volume.
func hash(volume string) string {
	const length = 8
	sum := sha256.Sum256([]byte(volume))
	return hex.EncodeToString(sum[:length])
}

// Forget implements [Tickets].
func (h Helper) Forget(volume string) error {
	paths, err := filepath.Glob(filepath.Join(h.Dir, "*-"+hash(volume)))
	for _, path := range paths {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// ticket gets the ticket of a volume's file server.
func (n *Node) ticket(ctx context.Context, v *volume) error {
	p := v.parameters
	switch {
	case is(p.OAuthToken):
		return csi.Invalid("volume %s: parameter mountWithOAuthToken: true is not allowed: the helper program takes such tokens as "+
			"arguments, which every process can read; use mountWithWorkloadIdentityToken", v.id)
	case n.config.Tickets == nil:
		return status.Errorf(codes.FailedPrecondition, "volume %s: mounts with an identity are not set up on this node", v.id)
	case v.needsToken() && v.token.IsZero():
		return status.Errorf(codes.FailedPrecondition, "volume %s: the request has no token of the service account: the CSIDriver object "+
			"needs tokenRequests with audience %s", v.id, tokenAudience)
	}
	err := n.config.Tickets.Get(ctx, Ticket{
		Volume: v.id, Account: v.account.Name(), Host: n.host(v), ClientID: p.ClientID, TenantID: p.TenantID, Token: v.token,
	})
	return csi.Status(err, "volume %s", v.id)
}
