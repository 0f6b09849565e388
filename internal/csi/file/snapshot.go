package file

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	csispec "github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"kaz/internal/azure"
	"kaz/internal/azure/storage"
	"kaz/internal/csi"
	"kaz/internal/fileservice"
	"kaz/internal/plan/parameter"
	"kaz/internal/plan/share"
)

// headerSnapshot is the header of a request for a snapshot of a share.
const headerSnapshot = "x-ms-snapshot"

// snapshots finds snapshots by their names, which are in their metadata. A name is read once: it does not change.
type snapshots struct {
	azure Azure
	data  dataPlane
	log   *slog.Logger
	mu    sync.Mutex
	names map[string]string   // name by share and time
	made  map[string]azure.ID // share by name, of snapshots that this process made
	reads map[string]*rate.Limiter
}

func newSnapshots(c *Config, data dataPlane) *snapshots {
	return &snapshots{azure: c.Azure, data: data, log: c.Log, names: map[string]string{}, made: map[string]azure.ID{},
		reads: map[string]*rate.Limiter{}}
}

// mayRead reports whether the name of another snapshot of an account may be read at present.
func (s *snapshots) mayRead(account azure.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.reads[account.Key()]
	if l == nil {
		l = rate.NewLimiter(readsPerSecond, readsInBurst)
		s.reads[account.Key()] = l
	}
	return l.Allow()
}

// taken is a snapshot of a share.
type taken struct {
	share azure.ID
	time  string // as Azure writes it
	quota int64  // GiB of the share
}

func (t taken) key() string { return t.share.Key() + "@" + share.FormatTime(t.time) }

// list returns the snapshots of an account's shares, or of one share.
func (s *snapshots) list(ctx context.Context, account azure.ID, name string) ([]taken, error) {
	q := azure.Query{Scope: storage.FileServiceOf(account), Type: storage.Shares, Expand: "snapshots"}
	if name != "" {
		q.Filter = "startswith(name, " + name + ")"
	}
	docs, err := s.azure.List(ctx, q)
	if err != nil {
		return nil, err
	}
	var all []taken
	for _, doc := range docs {
		d, err := azure.Decode[storage.Share](doc)
		if err != nil {
			return nil, err
		}
		if d.Properties.SnapshotTime != "" && (name == "" || d.ID.Name() == name) {
			all = append(all, taken{d.ID, d.Properties.SnapshotTime, d.Properties.QuotaGiB})
		}
	}
	return all, nil
}

const (
	// readsAtOnce bounds the reads of snapshots at the same time.
	readsAtOnce = 8
	// fewNames is the number of names that are read one by one. Azure Resource Manager lists snapshots without their metadata, and
	// allows 800 reads in 5 minutes for all accounts of a region. The file service lists them with it.
	fewNames = 16
	// readsPerSecond and readsInBurst bound the reads of names of an account: at most 600 in 5 minutes, so that other reads of shares
	// have room below Azure's limit.
	readsPerSecond, readsInBurst = 1, 300
	// namesAtMost bounds the list of the file service, which the driver may not reach.
	namesAtMost = 20 * time.Second
)

// find returns the snapshot of a share with a name, nil if there is none. If a snapshot cannot be read, the answer is not known.
// The newest snapshots are looked at first. Names that were read stay known, so that a repeated request continues where this one ends.
func (s *snapshots) find(ctx context.Context, of azure.ID, name string) (*taken, error) {
	all, err := s.list(ctx, of.Parent().Parent(), of.Name())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b taken) int { return strings.Compare(share.FormatTime(b.time), share.FormatTime(a.time)) })
	if s.unknown(all) > fewNames {
		s.learn(ctx, of)
	}
	for some := range slices.Chunk(all, readsAtOnce) {
		found := make([]string, len(some))
		group, ctx := errgroup.WithContext(ctx)
		for i, t := range some {
			group.Go(func() error {
				name, err := s.name(ctx, t)
				found[i] = name
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		if i := slices.Index(found, name); i >= 0 {
			return &some[i], nil
		}
	}
	return nil, nil
}

// unknown returns the number of snapshots without a known name.
func (s *snapshots) unknown(all []taken) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, t := range all {
		if _, known := s.names[t.key()]; !known {
			n++
		}
	}
	return n
}

// learn reads the names of a share's snapshots from the file service. If it cannot, the names are read one by one.
func (s *snapshots) learn(ctx context.Context, of azure.ID) {
	if s.data.config.Files == nil {
		return
	}
	ctx, end := context.WithTimeout(ctx, namesAtMost)
	defer end()
	files, err := s.data.of(ctx, of.Parent().Parent(), share.Parameters{})
	var all []fileservice.Snapshot
	if err == nil {
		all, err = files.Snapshots(ctx, of.Name())
	}
	if err != nil {
		s.log.WarnContext(ctx, "the file service does not list snapshots: they are read one by one", "share", of, "error", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range all {
		s.names[taken{share: of.Parent().Child("shares", one.Share), time: one.Time}.key()] = one.Name
	}
}

// name returns the name of a snapshot, "" for one that was not made by a driver.
func (s *snapshots) name(ctx context.Context, t taken) (string, error) {
	s.mu.Lock()
	name, known := s.names[t.key()]
	s.mu.Unlock()
	if known {
		return name, nil
	}
	if !s.mayRead(t.share.Parent().Parent()) {
		return "", status.Errorf(codes.Unavailable, "share %s has snapshots whose names are not known yet. The file service does not list "+
			"them, and Azure Resource Manager allows few reads: at most %d names of a storage account are read in 5 minutes. Names that "+
			"were read stay known: try again", t.share.Name(), readsInBurst+300*readsPerSecond)
	}
	doc, err := s.get(ctx, t.share, t.time)
	if azure.IsNotFound(err) {
		return "", nil // deleted meanwhile
	}
	if err != nil {
		return "", err
	}
	name = parameter.Lookup(doc.Properties.Metadata, share.Initiator)
	s.know(t, name)
	return name, nil
}

// know keeps the name of a snapshot.
func (s *snapshots) know(t taken, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[t.key()] = name
}

// get reads a snapshot.
func (s *snapshots) get(ctx context.Context, of azure.ID, at string) (azure.Resource[storage.Share], error) {
	doc, err := azure.Do(ctx, s.azure, azure.Request{Verb: azure.Get, ID: of, Header: map[string]string{headerSnapshot: at}})
	if err != nil {
		return azure.Resource[storage.Share]{}, err
	}
	return azure.Decode[storage.Share](doc)
}

// create takes a snapshot.
func (s *snapshots) create(ctx context.Context, of azure.ID, name string, metadata map[string]string) (taken, error) {
	values := map[string]string{share.Initiator: name}
	maps.Copy(values, metadata)
	body, _, err := azure.Overlay(nil, azure.Resource[storage.Share]{ID: of, Properties: storage.Share{Metadata: values}})
	if err != nil {
		return taken{}, err
	}
	doc, err := azure.Do(ctx, s.azure, azure.Request{
		Verb: azure.Put, ID: of, Body: body, Parameters: map[string]string{"$expand": "snapshots"}, Unseen: true, Additive: true,
	})
	if err != nil {
		return taken{}, err
	}
	if made, err := azure.Decode[storage.Share](doc); err == nil && made.Properties.SnapshotTime != "" {
		t := taken{share: of, time: made.Properties.SnapshotTime}
		s.know(t, name)
		return t, nil
	}
	found, err := s.find(ctx, of, name)
	if azure.KindOf(err).Retryable() {
		return taken{}, err
	}
	if err != nil || found == nil {
		return taken{}, status.Errorf(codes.Aborted, "snapshot %s: Azure does not show it yet: %v", name, err)
	}
	return *found, nil
}

// remember keeps which share a snapshot of a name is of, and returns the share that has one already.
func (s *snapshots) remember(name string, of azure.ID) (other azure.ID, taken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, taken = s.made[name]; taken && !other.Equal(of) {
		return other, true
	}
	s.made[name] = of
	return "", false
}

func (s *snapshots) forget(of azure.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, id := range s.made {
		if id.Equal(of) {
			delete(s.made, name)
		}
	}
}

// CreateSnapshot takes a snapshot of a share. A request that is repeated finds the snapshot by its name.
func (c *Controller) CreateSnapshot(ctx context.Context, r *csispec.CreateSnapshotRequest) (*csispec.CreateSnapshotResponse, error) {
	if err := csi.Missing("CreateSnapshot", "name", r.GetName(), "source_volume_id", r.GetSourceVolumeId()); err != nil {
		return nil, err
	}
	p, err := share.ReadSnapshotClass(r.GetParameters())
	if err != nil {
		return nil, csi.Invalid("CreateSnapshot: %v", err)
	}
	release, err := c.locks.Take("snapshot/"+r.GetName(), r.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	if credentials, given, err := requestSecret("CreateSnapshot", r.GetSecrets()); err != nil {
		return nil, err
	} else if given {
		return c.snapshotByDataPlane(ctx, r, p, credentials)
	}
	v, err := c.find(ctx, r.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	if other, exists := c.snapshots.remember(r.GetName(), v.ID); exists {
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %s: a snapshot of this name exists, of share %s", r.GetName(),
			other.Name())
	}
	t, err := c.snapshots.find(ctx, v.ID, r.GetName())
	if err == nil && t == nil {
		var made taken
		made, err = c.snapshots.create(ctx, v.ID, r.GetName(), p.Metadata)
		t = &made
	}
	if err != nil {
		return nil, csi.Status(err, "snapshot %s of share %s", r.GetName(), v.ID.Name())
	}
	return &csispec.CreateSnapshotResponse{Snapshot: c.shown(r.GetSourceVolumeId(), *t, v.Share.QuotaGiB)}, nil
}

// shown returns a snapshot as CSI shows it.
func (c *Controller) shown(volume string, t taken, quota int64) *csispec.Snapshot {
	subscription := c.config.Cluster.Subscription
	if t.share != "" {
		subscription = t.share.Subscription()
	}
	s := &csispec.Snapshot{
		SnapshotId: share.SnapshotID(volume, share.FormatTime(t.time), subscription), SourceVolumeId: volume,
		SizeBytes: share.Bytes(quota), ReadyToUse: true,
	}
	if at, err := time.Parse(time.RFC3339Nano, t.time); err == nil {
		s.CreationTime = timestamppb.New(at)
	}
	return s
}

// DeleteSnapshot deletes a snapshot. It succeeds if the snapshot does not exist.
func (c *Controller) DeleteSnapshot(ctx context.Context, r *csispec.DeleteSnapshotRequest) (*csispec.DeleteSnapshotResponse, error) {
	if err := csi.Missing("DeleteSnapshot", "snapshot_id", r.GetSnapshotId()); err != nil {
		return nil, err
	}
	done := &csispec.DeleteSnapshotResponse{}
	s, err := share.ParseSnapshot(r.GetSnapshotId())
	if err != nil {
		return done, nil // no snapshot of this driver
	}
	release, err := c.locks.Take(r.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	defer release()
	credentials, given, err := requestSecret("DeleteSnapshot", r.GetSecrets())
	if err != nil {
		return nil, err
	}
	if given {
		volume, _, _ := strings.Cut(r.GetSnapshotId(), "#"+s.Time)
		err = c.data.deleteSnapshot(ctx, credentials, volume, s)
	} else if err = c.needAzure(r.GetSnapshotId()); err == nil {
		id := c.config.Cluster.ShareID(s.Volume)
		_, err = azure.Do(ctx, c.config.Azure, azure.Request{Verb: azure.Delete, ID: id, Header: map[string]string{headerSnapshot: s.Time}})
		if err == nil {
			c.snapshots.forget(id)
		}
	}
	if azure.IsNotFound(err) {
		err = nil
	}
	return done, csi.Status(err, "delete snapshot %s of share %s", s.Time, s.Volume.Share)
}

// GetSnapshot returns a snapshot.
func (c *Controller) GetSnapshot(ctx context.Context, r *csispec.GetSnapshotRequest) (*csispec.GetSnapshotResponse, error) {
	if err := csi.Missing("GetSnapshot", "snapshot_id", r.GetSnapshotId()); err != nil {
		return nil, err
	}
	one, err := c.oneSnapshot(ctx, r.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	if one == nil {
		return nil, status.Errorf(codes.NotFound, "snapshot %s does not exist", r.GetSnapshotId())
	}
	return &csispec.GetSnapshotResponse{Snapshot: one}, nil
}

// oneSnapshot returns a snapshot, nil if it does not exist.
func (c *Controller) oneSnapshot(ctx context.Context, id string) (*csispec.Snapshot, error) {
	s, err := share.ParseSnapshot(id)
	if err != nil {
		return nil, nil
	}
	if err := c.needAzure(id); err != nil {
		return nil, err
	}
	of := c.config.Cluster.ShareID(s.Volume)
	doc, err := c.snapshots.get(ctx, of, s.Time)
	switch {
	case azure.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, csi.Status(err, "snapshot %s", id)
	}
	volume, _, _ := strings.Cut(id, "#"+s.Time)
	answer := c.shown(volume, taken{share: of, time: s.Time}, doc.Properties.QuotaGiB)
	answer.SnapshotId = id
	return answer, nil
}
