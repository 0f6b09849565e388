package engine

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/definition"
	"kaz/internal/cluster/lock"
	"kaz/internal/cluster/record"
)

// way leads to blobs, unless broken refuses. With a status and a code storage refuses.
type way struct {
	dataplane.Client
	broken func() error
	status int
	code   string
}

// Do implements the transport of [dataplane.Client].
func (w *way) Do(r *http.Request) (*http.Response, error) {
	if w.broken != nil {
		if err := w.broken(); err != nil {
			return nil, err
		}
	}
	if w.status != 0 {
		return &http.Response{StatusCode: w.status, Header: http.Header{"X-Ms-Error-Code": {w.code}}, Body: http.NoBody}, nil
	}
	return w.HTTP.Do(r)
}

// lockable is a deployed cluster and a function that returns further engines for it, each of which has the lock.
func lockable(t *testing.T) (*lab, *simulation, definition.Definition, func(holder string) (*Engine, *way)) {
	t.Helper()
	l, s, d := deployed(t, func(d *definition.Definition) { d.Pools[0].Spec.Replicas = 2 }, "dev.yaml")
	var mu sync.Mutex
	return l, s, d, func(holder string) (*Engine, *way) {
		w := &way{Client: l.azure.Blobs()}
		container := dataplane.Container{Client: dataplane.Client{Token: w.Token, HTTP: w}, URL: s.names.ContainerURL()}
		e := engineFor(l.client)
		e.Holder, e.Lock = holder, &dataplane.Lock{Container: container}
		e.Say = func(line string) {
			mu.Lock()
			defer mu.Unlock()
			l.said = append(l.said, holder+": "+line)
		}
		s.connect(e)
		return e, w
	}
}

// scaled is the definition with another number of nodes.
func scaled(d definition.Definition, count int) record.Change {
	d = copied(d)
	d.Pools[0].Spec.Replicas = count
	return record.Change{Definition: d}
}

// TestTwoOperators checks scenario 25: while one process changes a cluster, another process waits, and learns the name of the
// first. It goes on when the first process has ended or died.
func TestTwoOperators(t *testing.T) {
	for name, test := range map[string]struct {
		joins, second time.Duration // after the begin of the first change; 0 for second is when its machines are made
		dies          bool
		want          error
	}{
		"ends":     {20 * time.Second, 0, false, nil},
		"goes on":  {5 * time.Minute, 10 * time.Second, false, lock.ErrHeld},
		"has died": {5 * time.Minute, 10 * time.Second, true, record.ErrOpen},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s, d, operator := lockable(t)
				alice, way := operator("alice@a")
				alice.Patience.Join = 10 * time.Minute
				say, made, once := alice.Say, make(chan bool), sync.Once{}
				alice.Say = func(line string) {
					say(line)
					if strings.Contains(line, " succeeded (") {
						once.Do(func() { close(made) })
					}
				}
				there, began := s.nodes(), time.Now()
				s.absent = func(machine string) bool { return !slices.Contains(there, machine) && time.Since(began) < test.joins }
				first := make(chan error)
				go func() { first <- alice.Change(t.Context(), scaled(d, 3)) }()
				if test.second == 0 {
					<-made
				}
				<-time.After(test.second)
				if test.dies {
					way.broken = func() error { return io.ErrUnexpectedEOF }
				}
				bob, _ := operator("bob@b")
				err := bob.Change(t.Context(), scaled(d, 4))
				ended := <-first
				t.Logf("the first one: %v", ended)
				if test.want == nil && err != nil || !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v\n%s", err, test.want, strings.Join(l.said, "\n"))
				}
				if errors.Is(test.want, lock.ErrHeld) && !strings.HasSuffix(err.Error(), "alice@a") {
					t.Errorf("the holder is not named: %v", err)
				}
				if !slices.Contains(l.said, "bob@b: alice@a changes the cluster: waiting for a minute, in case it has died") {
					t.Errorf("said %q", l.said)
				}
			})
		})
	}
}

// TestLostLock checks that a process stops when it cannot renew its lock, or when another process has the lock. A process
// without the right to blobs goes on without a lock if it was asked to.
func TestLostLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s, d, operator := lockable(t)
		e, way := operator("alice@a")
		there, began := s.nodes(), time.Now()
		s.absent = func(machine string) bool { return !slices.Contains(there, machine) }
		way.broken = func() error {
			if time.Since(began) > 10*time.Second {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		e.Patience.Join = time.Hour
		err := e.Change(t.Context(), scaled(d, 3))
		if took := time.Since(began); !errors.Is(err, lock.ErrHeld) || !strings.Contains(err.Error(), "the lock was lost") || took > 70*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		s.absent = func(string) bool { return false }
		other, way := operator("bob@b")
		way.status, way.code = http.StatusServiceUnavailable, "ServerBusy"
		other.Unlocked = true
		if _, err := other.Resume(t.Context(), s.names); !errors.Is(err, lock.ErrUnlocked) {
			t.Errorf("a busy account: %v", err)
		}
		way.status, way.code = http.StatusForbidden, "AuthorizationPermissionMismatch"
		if found, err := other.Resume(t.Context(), s.names); !found || err != nil {
			t.Errorf("without blobs: %v %v", found, err)
		}
		want := "bob@b: others are not kept from changing the cluster at the same time: "
		if !slices.ContainsFunc(l.said, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("said %q", l.said)
		}
	})
}
