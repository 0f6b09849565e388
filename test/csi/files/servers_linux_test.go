package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"kaz/internal/host/process"
	"kaz/internal/localazure/share"
	"kaz/internal/testkit/guest"
)

// The storage account of the shares that need no Azure.
const (
	account = "account0"
	key     = "c2VjcmV0IGtleSBvZiBhbiBhY2NvdW50IHdpdGggNjQgYnl0ZXMsIGFzIEF6dXJlIG1ha2VzIHRoZW0uLi4uLi4uLg=="
)

// serveShares starts the servers of the local Azure for file shares.
func serveShares(ctx context.Context, h *guest.Host) (*share.Server, error) {
	processes, err := process.Open(ctx, filepath.Join(h.Dir, "processes"))
	if err != nil {
		return nil, err
	}
	h.AtEnd(func() error {
		const grace = time.Second
		processes.Close(context.WithoutCancel(ctx), grace)
		return nil
	})
	return share.Start(ctx, share.Config{
		Dir: filepath.Join(h.Dir, "shares"), SMB: guest.HostAddress + ":445", NFS: guest.HostAddress + ":2049", Processes: processes,
	})
}

// fixedShares are shares over SMB and NFS, with a folder each.
func fixedShares(dir string) (share.Account, error) {
	shares := []share.Share{
		{Name: "files", Protocol: share.SMB, QuotaGiB: 100},
		{Name: "exports", Protocol: share.NFS},
		{Name: "squashed", Protocol: share.NFS, Squash: share.RootSquash},
	}
	for i := range shares {
		s := &shares[i]
		s.Path = filepath.Join(dir, s.Name)
		if err := errors.Join(os.MkdirAll(filepath.Join(s.Path, "folder"), 0o755), os.Chmod(s.Path, 0o777)); err != nil {
			return share.Account{}, err
		}
	}
	return share.Account{Name: account, Key: key, Shares: shares}, nil
}
