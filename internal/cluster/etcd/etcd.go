// Package etcd works on the etcd of a cluster from outside: it reads the members, removes one, and saves what etcd has. It
// reaches etcd through the API server, which forwards a port to the pod of a member. Layer L3.
package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"kaz/internal/cluster/inspect"
	"kaz/internal/pause"
)

// Client is the etcd of a cluster.
type Client struct {
	// Names are the members with an etcd that runs.
	Names func(ctx context.Context) ([]string, error)
	// Dial returns an address at which a member answers, until closed.
	Dial func(ctx context.Context, member string) (address string, closed func(), err error)
	// TLS has the certificate of the client; nil for an etcd without TLS.
	TLS func(ctx context.Context) (*tls.Config, error)
	// Put stores a backup and returns where it is.
	Put func(ctx context.Context, name string, backup *os.File) (string, error)
	// Timeout bounds a request to a member, by default 10 s. It does not bound a backup and a defragmentation.
	Timeout time.Duration

	mu      sync.Mutex
	expires map[string]time.Time // of the certificates of members
}

var _ inspect.Etcd = (*Client)(nil)

func (c *Client) timeout() time.Duration {
	if c.Timeout == 0 {
		return 10 * time.Second
	}
	return c.Timeout
}

// open connects to one member.
func (c *Client) open(ctx context.Context, member string) (*clientv3.Client, func(), error) {
	address, closed, err := c.Dial(ctx, member)
	if err != nil {
		return nil, nil, err
	}
	config := clientv3.Config{Endpoints: []string{"http://" + address}, DialTimeout: c.timeout(), Logger: zap.NewNop()}
	if c.TLS != nil {
		if config.TLS, err = c.TLS(ctx); err != nil {
			closed()
			return nil, nil, fmt.Errorf("%w: %w", inspect.ErrEtcdAccess, err)
		}
		config.TLS = c.noting(config.TLS, member)
		config.Endpoints = []string{"https://" + address}
	}
	client, err := clientv3.New(config)
	if err != nil {
		closed()
		return nil, nil, err
	}
	return client, func() { _ = client.Close(); closed() }, nil
}

// with runs f with a connection to a member.
func (c *Client) with(ctx context.Context, member string, f func(context.Context, *clientv3.Client) error) error {
	timed, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	client, closed, err := c.open(timed, member)
	if err != nil {
		return fmt.Errorf("etcd of %s: %w", member, err)
	}
	defer closed()
	if err := f(timed, client); err != nil {
		return fmt.Errorf("etcd of %s: %w", member, err)
	}
	return nil
}

// any runs f with a connection to a member that answers. It leaves one member out. Its error has what each member said.
func (c *Client) any(ctx context.Context, without string, f func(context.Context, *clientv3.Client) error) error {
	names, err := c.Names(ctx)
	if err != nil {
		return err
	}
	var failed error
	for _, name := range names {
		if name == without {
			continue
		}
		err := c.with(ctx, name, f)
		switch {
		case err == nil:
			return nil
		case failed == nil:
			failed = err
		default:
			failed = fmt.Errorf("%w; %w", failed, err)
		}
	}
	if failed == nil {
		failed = errors.New("no member of etcd runs")
	}
	return failed
}

// Remove implements [inspect.Etcd]. It makes another member the leader before it removes the leader, so that writes go on. If
// no member has the name, it removes a learner without a name. Such a learner never started: it is left of a join that
// stopped, and etcd takes no other learner beside it.
func (c *Client) Remove(ctx context.Context, name string) error {
	members, err := c.Members(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(members, func(m inspect.EtcdMember) bool { return m.Name == name })
	if i < 0 {
		name = ""
		i = slices.IndexFunc(members, func(m inspect.EtcdMember) bool { return m.Name == "" && m.Learner })
	}
	if i < 0 {
		return nil
	}
	if members[i].Leader {
		if err := c.passOn(ctx, name, members); err != nil {
			return err
		}
	}
	// Etcd refuses to lose a member until the others have been connected for five seconds.
	for try := 0; ; try++ {
		err = c.any(ctx, name, func(ctx context.Context, client *clientv3.Client) error {
			id, err := idOf(ctx, client, name)
			if err != nil || id == 0 {
				return err
			}
			_, err = client.MemberRemove(ctx, id)
			return err
		})
		if !errors.Is(err, rpctypes.ErrUnhealthy) || try == mostTries {
			return err
		}
		if err := pause.For(ctx, time.Second); err != nil {
			return err
		}
	}
}

// mostTries is how often a removal that etcd refuses for now is tried again.
const mostTries = 20

// passOn makes another healthy member the leader.
func (c *Client) passOn(ctx context.Context, leader string, members []inspect.EtcdMember) error {
	i := slices.IndexFunc(members, func(m inspect.EtcdMember) bool { return m.Healthy && !m.Learner && m.Name != leader })
	if i < 0 {
		return fmt.Errorf("no other member of etcd can lead than %s", leader)
	}
	return c.with(ctx, leader, func(ctx context.Context, client *clientv3.Client) error {
		id, err := idOf(ctx, client, members[i].Name)
		if err != nil {
			return err
		}
		_, err = client.MoveLeader(ctx, id)
		return err
	})
}

// idOf is the id of a member, 0 if it is none.
func idOf(ctx context.Context, client *clientv3.Client, name string) (uint64, error) {
	list, err := client.MemberList(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range list.Members {
		if m.Name == name {
			return m.ID, nil
		}
	}
	return 0, nil
}

// Save implements [inspect.Etcd]. It checks the backup with the hash that etcd appends before it stores it.
func (c *Client) Save(ctx context.Context) (string, error) {
	names, err := c.Names(ctx)
	if err != nil {
		return "", err
	}
	failed := errors.New("no member of etcd runs")
	for _, name := range names {
		var at string
		if at, failed = c.saveFrom(ctx, name); failed == nil {
			return at, nil
		}
	}
	return "", failed
}

func (c *Client) saveFrom(ctx context.Context, member string) (string, error) {
	client, closed, err := c.open(ctx, member)
	if err != nil {
		return "", fmt.Errorf("etcd of %s: %w", member, err)
	}
	defer closed()
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return "", fmt.Errorf("etcd of %s: %w", member, err)
	}
	stream, err := client.Snapshot(ctx)
	if err != nil {
		return "", fmt.Errorf("backup of etcd: %w", err)
	}
	defer func() { _ = stream.Close() }()
	file, err := os.CreateTemp("", "kaz-etcd-*.db")
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close(); _ = os.Remove(file.Name()) }()
	if _, err := io.Copy(file, stream); err != nil {
		return "", fmt.Errorf("backup of etcd: %w", err)
	}
	if err := Check(file); err != nil {
		return "", err
	}
	return c.Put(ctx, fmt.Sprintf("%s-%d.db", time.Now().UTC().Format("20060102T150405Z"), status.Header.Revision), file)
}

// Check checks a backup with the hash at its end, and leaves the file at its begin.
func Check(file io.ReadSeeker) error {
	const page = 512
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size%page != sha256.Size {
		return fmt.Errorf("backup of etcd: %d bytes, which has no hash at its end: it is cut", size)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	sum, want := sha256.New(), make([]byte, sha256.Size)
	if _, err := io.CopyN(sum, file, size-sha256.Size); err != nil {
		return err
	}
	if _, err := io.ReadFull(file, want); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), want) {
		return errors.New("backup of etcd: the hash at its end does not fit: it is damaged")
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}
