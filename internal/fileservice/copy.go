package fileservice

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/directory"
	sdkfile "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/fileerror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"golang.org/x/sync/errgroup"

	"kaz/internal/azure"
	"kaz/internal/pause"
)

const (
	// copiesAtOnce bounds the files that are copied at the same time.
	copiesAtOnce = 16
	// sourceValid is how long the service may read a source in another account.
	sourceValid = 24 * time.Hour
	// firstLook and slowestLook bound the time between two looks at a copy.
	firstLook, slowestLook = 50 * time.Millisecond, 5 * time.Second
)

// Copy implements [Service]. The service reads the sources itself: no content passes through the driver.
func (f *files) Copy(ctx context.Context, from CopySource, to string) error {
	c := copier{files: f, to: f.client.NewShareClient(to)}
	source := f
	if from.Service != nil {
		other, ok := from.Service.(*files)
		if !ok {
			return fmt.Errorf("copy share %s: its file service is of another kind", from.Share)
		}
		source, c.signed = other, true
	}
	c.from = source.client.NewShareClient(from.Share)
	if from.Snapshot != "" {
		snapshot, err := c.from.WithSnapshot(from.Snapshot)
		if err != nil {
			return source.known(err, "snapshot "+from.Snapshot)
		}
		c.from, c.snapshot = snapshot, &from.Snapshot
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiesAtOnce)
	c.group = group
	walked := c.folder(ctx, c.from.NewRootDirectoryClient(), c.to.NewRootDirectoryClient(), "")
	if err := group.Wait(); err != nil {
		return err
	}
	return walked
}

// copier copies the files of a share.
type copier struct {
	files    *files
	from, to *share.Client
	snapshot *string
	signed   bool // the source is in another account
	group    *errgroup.Group
}

// folder copies a folder with all below it.
func (c copier) folder(ctx context.Context, from, to *directory.Client, at string) error {
	pager := from.NewListFilesAndDirectoriesPager(&directory.ListFilesAndDirectoriesOptions{ShareSnapshot: c.snapshot})
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return c.files.known(err, "list folder /"+at)
		}
		for _, f := range page.Segment.Files {
			name := value(f.Name)
			source, target := from.NewFileClient(name), to.NewFileClient(name)
			size := int64(0)
			if f.Properties != nil {
				size = value(f.Properties.ContentLength)
			}
			c.group.Go(func() error { return c.file(ctx, source, target, path.Join(at, name), size) })
		}
		for _, d := range page.Segment.Directories {
			name := value(d.Name)
			target := to.NewSubdirectoryClient(name)
			if _, err := target.Create(ctx, nil); err != nil && !fileerror.HasCode(err, fileerror.ResourceAlreadyExists) {
				return c.files.known(err, "create folder "+path.Join(at, name))
			}
			if err := c.folder(ctx, from.NewSubdirectoryClient(name), target, path.Join(at, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// file copies a file, unless an earlier call has copied it.
func (c copier) file(ctx context.Context, from, to *sdkfile.Client, name string, size int64) error {
	state, err := look(ctx, to)
	switch {
	case fileerror.HasCode(err, fileerror.ResourceNotFound, fileerror.ParentNotFound):
	case err != nil:
		return c.files.known(err, "read file "+name)
	case state.copied(size):
		return nil
	case state.status == sdkfile.CopyStatusTypePending:
		return c.await(ctx, to, name, size)
	}
	source := from.URL()
	if c.signed {
		if source, err = from.GetSASURL(sas.FilePermissions{Read: true}, time.Now().Add(sourceValid), nil); err != nil {
			return fmt.Errorf("copy file %s: sign its source: %w", name, err)
		}
	}
	if _, err := to.StartCopyFromURL(ctx, source, copyOptions()); err != nil {
		return c.files.known(err, "copy file "+name)
	}
	return c.await(ctx, to, name, size)
}

// copyOptions keep what SMB knows of a file.
func copyOptions() *sdkfile.StartCopyFromURLOptions {
	return &sdkfile.StartCopyFromURLOptions{CopyFileSMBInfo: &sdkfile.CopyFileSMBInfo{
		Attributes: sdkfile.SourceCopyFileAttributes{}, CreationTime: sdkfile.SourceCopyFileCreationTime{},
		LastWriteTime: sdkfile.SourceCopyFileLastWriteTime{}, ChangeTime: sdkfile.SourceCopyFileChangeTime{},
		PermissionCopyMode: to.Ptr(sdkfile.PermissionCopyModeTypeSource),
	}}
}

// state is how far the copy of a file is.
type state struct {
	status sdkfile.CopyStatusType
	size   int64
	why    string
}

func (s state) copied(size int64) bool {
	return s.status == sdkfile.CopyStatusTypeSuccess && s.size == size
}

func look(ctx context.Context, f *sdkfile.Client) (state, error) {
	p, err := f.GetProperties(ctx, nil)
	return state{value(p.CopyStatus), value(p.ContentLength), value(p.CopyStatusDescription)}, err
}

// await waits until a file is copied.
func (c copier) await(ctx context.Context, f *sdkfile.Client, name string, size int64) error {
	for wait := firstLook; ; wait = min(2*wait, slowestLook) {
		s, err := look(ctx, f)
		switch {
		case err != nil:
			return c.files.known(err, "read file "+name)
		case s.copied(size):
			return nil
		case s.status != sdkfile.CopyStatusTypePending:
			return &azure.Error{Kind: azure.Unavailable, Message: fmt.Sprintf("the copy of file %s ended as %q with %d of %d bytes: %s; "+
				"it is tried again", name, s.status, s.size, size, s.why)}
		}
		if err := pause.For(ctx, wait); err != nil {
			return err
		}
	}
}
