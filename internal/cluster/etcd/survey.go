package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kaz/internal/cluster/inspect"
)

// noting is a configuration that notes when the certificate of a member ends.
func (c *Client) noting(config *tls.Config, member string) *tls.Config {
	config = config.Clone()
	config.VerifyConnection = func(s tls.ConnectionState) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.expires == nil {
			c.expires = map[string]time.Time{}
		}
		if len(s.PeerCertificates) > 0 {
			c.expires[member] = s.PeerCertificates[0].NotAfter
		}
		return nil
	}
	return config
}

func (c *Client) end(member string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.expires[member]
}

// Members implements [inspect.Etcd]. A member is healthy if it answers, knows a leader and is not corrupt. Without a majority it is
// an error.
func (c *Client) Members(ctx context.Context) ([]inspect.EtcdMember, error) {
	return c.members(ctx, c.alarms(ctx))
}

// Survey is [Client.Members] that also works without a majority. Then it returns what some member knew last, without alarms.
func (c *Client) Survey(ctx context.Context) ([]inspect.EtcdMember, error) {
	all, err := c.members(ctx, nil, clientv3.WithSerializable())
	if err != nil {
		return nil, err
	}
	voters, healthy := 0, 0
	for _, m := range all {
		if !m.Learner {
			voters++
			if m.Healthy {
				healthy++
			}
		}
	}
	if 2*healthy <= voters {
		return all, nil
	}
	return c.Members(ctx)
}

func (c *Client) members(ctx context.Context, alarms map[uint64][]string, how ...clientv3.OpOption) ([]inspect.EtcdMember, error) {
	var list *clientv3.MemberListResponse
	err := c.any(ctx, "", func(ctx context.Context, client *clientv3.Client) (err error) {
		list, err = client.MemberList(ctx, how...)
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []inspect.EtcdMember
	for _, m := range list.Members {
		one := inspect.EtcdMember{Name: m.Name, Learner: m.IsLearner, ID: strconv.FormatUint(m.ID, 16), Alarms: alarms[m.ID]}
		if m.Name == "" {
			one.Problem = "it has not started"
		} else if err := c.with(ctx, m.Name, func(ctx context.Context, client *clientv3.Client) error {
			return ask(ctx, client, m.ID, &one)
		}); err != nil {
			one.Problem = err.Error()
		}
		one.Expires = c.end(m.Name)
		all = append(all, one)
	}
	return all, nil
}

// ask adds what a member tells of itself.
func ask(ctx context.Context, client *clientv3.Client, id uint64, one *inspect.EtcdMember) error {
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return err
	}
	one.Size, one.InUse, one.Quota = status.DbSize, status.DbSizeInUse, status.DbSizeQuota
	one.Leader = status.Leader == id
	if status.Leader == 0 {
		return errors.New("it knows no leader")
	}
	one.Healthy = !slices.Contains(one.Alarms, etcdserverpb.AlarmType_CORRUPT.String())
	return nil
}

// alarms are the alarms by the ids of members. Without a majority etcd tells none.
func (c *Client) alarms(ctx context.Context) map[uint64][]string {
	all := map[uint64][]string{}
	_ = c.any(ctx, "", func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.AlarmList(ctx)
		if err != nil {
			return err
		}
		for _, a := range answer.Alarms {
			all[a.MemberID] = append(all[a.MemberID], a.Alarm.String())
		}
		return nil
	})
	return all
}

// Compact forgets all revisions of objects but the current ones. Clients that watch older ones begin anew.
func (c *Client) Compact(ctx context.Context) error {
	return c.any(ctx, "", func(ctx context.Context, client *clientv3.Client) error {
		status, err := client.Status(ctx, client.Endpoints()[0])
		if err != nil {
			return err
		}
		_, err = client.Compact(ctx, status.Header.Revision, clientv3.WithCompactPhysical())
		return err
	})
}

// mostDefragment bounds the defragmentation of a member, which answers no request during it.
const mostDefragment = 10 * time.Minute

// Defragment gives the unused space of a member's database back to its disk. Meanwhile the member answers no request.
func (c *Client) Defragment(ctx context.Context, member string) error {
	ctx, cancel := context.WithTimeout(ctx, mostDefragment)
	defer cancel()
	client, closed, err := c.open(ctx, member)
	if err != nil {
		return fmt.Errorf("etcd of %s: %w", member, err)
	}
	defer closed()
	if _, err := client.Defragment(ctx, client.Endpoints()[0]); err != nil {
		return fmt.Errorf("defragment etcd of %s: %w", member, err)
	}
	return nil
}

// Disarm ends the alarms NOSPACE. Each member raises its alarm again if its database has still no room.
func (c *Client) Disarm(ctx context.Context) error {
	return c.any(ctx, "", func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.AlarmList(ctx)
		if err != nil {
			return err
		}
		for _, a := range answer.Alarms {
			if a.Alarm != etcdserverpb.AlarmType_NOSPACE {
				continue
			}
			if _, err := client.AlarmDisarm(ctx, (*clientv3.AlarmMember)(a)); err != nil {
				return err
			}
		}
		return nil
	})
}
