package etcd

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kaz/internal/cluster/inspect"
)

// announce adds a member as a learner, as kubeadm does before it starts the member's etcd. It returns the members by then.
func (r *ring) announce(c *Client, name string) (initial string, err error) {
	r.t.Helper()
	if r.peers[name] == "" {
		r.clients[name], r.peers[name] = address(r.t), address(r.t)
	}
	err = c.any(r.t.Context(), "", func(ctx context.Context, client *clientv3.Client) error {
		answer, err := client.MemberAddAsLearner(ctx, []string{"http://" + r.peers[name]})
		if err != nil {
			return err
		}
		var all []string
		for _, m := range answer.Members {
			if m.Name == "" {
				m.Name = name
			}
			all = append(all, m.Name+"="+m.PeerURLs[0])
		}
		initial = strings.Join(all, ",")
		return nil
	})
	return initial, err
}

// promote gives a learner a vote, as soon as it has what the others have.
func promote(t *testing.T, c *Client, name string) {
	t.Helper()
	for deadline := time.After(30 * time.Second); ; {
		err := c.any(t.Context(), name, func(ctx context.Context, client *clientv3.Client) error {
			id, err := idOf(ctx, client, name)
			if err != nil {
				return err
			}
			_, err = client.MemberPromote(ctx, id)
			return err
		})
		if err == nil {
			return
		}
		select {
		case <-deadline:
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TestJoinsOverlap checks scenario 13 with a real etcd: while a member joins, etcd refuses another one until the first has
// its vote. The list of members stays sound. The learner that a stopped join left is removed, and the next member joins.
func TestJoinsOverlap(t *testing.T) {
	r, c := start(t, "cp-0")
	names := []string{"cp-0"}
	c.Names = func(context.Context) ([]string, error) { return names, nil }
	count := func(voters, learners int) func([]inspect.EtcdMember) bool {
		return func(all []inspect.EtcdMember) bool {
			v, l := 0, 0
			for _, m := range all {
				switch {
				case m.Learner:
					l++
				case m.Healthy:
					v++
				}
			}
			return v == voters && l == learners && len(all) == voters+learners
		}
	}
	until(t, c, count(1, 0))
	initial, err := r.announce(c, "cp-1")
	if err != nil {
		t.Fatal(err)
	}
	overlap := func(when string) {
		t.Helper()
		if _, err := r.announce(c, "cp-2"); !errors.Is(err, rpctypes.ErrTooManyLearners) {
			t.Errorf("%s a second member may join: %v", when, err)
		}
	}
	overlap("before the first one has started")
	members := until(t, c, count(1, 1))
	if !slices.ContainsFunc(members, func(m inspect.EtcdMember) bool {
		return m.Name == "" && m.ID != "" && m.Problem == "it has not started"
	}) {
		t.Errorf("%+v", members)
	}
	r.run("cp-1", initial, "existing")
	until(t, c, func(all []inspect.EtcdMember) bool {
		return slices.ContainsFunc(all, func(m inspect.EtcdMember) bool { return m.Name == "cp-1" && m.Learner && m.Healthy })
	})
	overlap("before the first one has its vote")
	promote(t, c, "cp-1")
	names = append(names, "cp-1")
	until(t, c, count(2, 0))
	deadline := time.After(30 * time.Second)
	for initial, err = r.announce(c, "cp-2"); err != nil; initial, err = r.announce(c, "cp-2") { // etcd waits until the others are connected
		select {
		case <-deadline:
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	r.run("cp-2", initial, "existing")
	promote(t, c, "cp-2")
	names = append(names, "cp-2")
	until(t, c, count(3, 0))

	// A machine dies after it was announced.
	for _, err = r.announce(c, "cp-3"); err != nil; _, err = r.announce(c, "cp-3") {
		select {
		case <-deadline:
			t.Fatal(err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	until(t, c, count(3, 1))
	if err := c.Remove(t.Context(), "cp-3"); err != nil {
		t.Fatal(err)
	}
	until(t, c, count(3, 0))
	if _, err := r.announce(c, "cp-4"); err != nil {
		t.Errorf("after the rest of a join is removed: %v", err)
	}
}
