// Package fileservice speaks the API of Azure's file service, https://ACCOUNT.file.core.windows.net. It creates shares with a key
// alone and copies files within the service, which Azure Resource Manager cannot. Layer L2.
package fileservice

import (
	"context"

	"kaz/internal/azure/secret"
	"kaz/internal/azure/storage"
)

// Credentials are the name and key of an account. Without a key the driver's identity is used.
type Credentials struct {
	Account string
	Key     secret.Text
}

// Open opens the file service of an account at a host.
type Open func(host string, c Credentials) (Service, error)

// Service is the file service of an account. Errors are [*azure.Error].
type Service interface {
	// CreateShare creates a share for SMB with the size, tier, performance and metadata of wanted.
	CreateShare(ctx context.Context, name string, wanted storage.Share) error
	// Read returns the size and the metadata of a share, or of the snapshot of a time.
	Read(ctx context.Context, name, snapshot string) (storage.Share, error)
	SetQuota(ctx context.Context, name string, quotaGiB int64) error
	DeleteShare(ctx context.Context, name string) error
	// CreateFolder creates a folder with those above it. Folders that exist are no error.
	CreateFolder(ctx context.Context, share, path string) error
	// Snapshot takes a snapshot and returns its time. Snapshots returns the snapshots of shares with names that begin with a prefix.
	Snapshot(ctx context.Context, share string, metadata map[string]string) (at string, err error)
	Snapshots(ctx context.Context, prefix string) ([]Snapshot, error)
	DeleteSnapshot(ctx context.Context, share, at string) error
	// Copy copies all files of a share, or of a snapshot of it, within the service. It returns when all are copied and have the
	// size of their sources. It goes on where an earlier call ended.
	Copy(ctx context.Context, from CopySource, to string) error
}

// Snapshot is a snapshot of a share.
type Snapshot struct {
	Share, Time string
	// Name is in the metadata of the snapshot, "" if it was not made by a driver.
	Name string
}

// CopySource is a share or a snapshot of a share.
type CopySource struct {
	Share    string
	Snapshot string // time, "" for the share itself
	// Service is the file service of the source's account, nil for the same account.
	Service Service
}
