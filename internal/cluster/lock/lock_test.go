package lock_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/cluster/dataplane"
	"kaz/internal/cluster/lock"
)

// storage answers requests of a lock, each with the answer that it has for the action of a lease, or for "write" and "read".
type storage struct {
	answers map[string]answer
	asked   []string
}

// answer is an answer of storage: a status with a code, no answer at all until the request ends, or a network that fails.
type answer struct {
	status        int
	code          string
	hangs, broken bool
}

func (s *storage) Do(r *http.Request) (*http.Response, error) {
	action := r.Header.Get("X-Ms-Lease-Action")
	if action == "" {
		action = map[string]string{http.MethodPut: "write", http.MethodGet: "read"}[r.Method]
	}
	s.asked = append(s.asked, action)
	a := s.answers[action]
	switch {
	case a.broken:
		return nil, io.ErrUnexpectedEOF
	case a.hangs:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	status := cmp.Or(a.status, http.StatusOK)
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{"X-Ms-Error-Code": {a.code}},
		Body: io.NopCloser(strings.NewReader(""))}, nil
}

func guardOf(s *storage, said *[]string) lock.Guard {
	client := dataplane.Client{HTTP: s, Token: func(context.Context, string) (string, error) { return "t", nil }}
	return lock.Guard{
		Lease: &dataplane.Lock{Container: dataplane.Container{Client: client, URL: "https://account.invalid/kaz-dev"}},
		Say:   func(format string, _ ...any) { *said = append(*said, format) }, Every: time.Second,
	}
}

// TestGuardRefuses checks that a change does not begin without the lock. Only a process without the right to lock goes on, and only
// if it was asked to.
func TestGuardRefuses(t *testing.T) {
	broken := answer{broken: true}
	noRight := answer{status: http.StatusForbidden, code: "AuthorizationPermissionMismatch"}
	for name, test := range map[string]struct {
		at     string
		answer answer
		asked  bool // to go on without the right
		goesOn bool
	}{
		"the account is busy":         {"acquire", answer{status: http.StatusServiceUnavailable, code: "ServerBusy"}, true, false},
		"the account fails":           {"acquire", answer{status: http.StatusInternalServerError, code: "InternalError"}, true, false},
		"the network fails":           {"acquire", broken, true, false},
		"no right":                    {"acquire", noRight, false, false},
		"no right, asked":             {"acquire", noRight, true, true},
		"a firewall":                  {"acquire", answer{status: http.StatusForbidden, code: "AuthorizationFailure"}, true, true},
		"not signed in":               {"acquire", answer{status: http.StatusForbidden, code: "AuthenticationFailed"}, true, false},
		"a token of another audience": {"acquire", answer{status: http.StatusUnauthorized, code: "InvalidAuthenticationInfo"}, true, false},
		"an odd 403":                  {"acquire", answer{status: http.StatusForbidden, code: ""}, true, false},
		"no name of the holder":       {"write", answer{status: http.StatusServiceUnavailable, code: "ServerBusy"}, true, false},
		"no container":                {"acquire", answer{status: http.StatusNotFound, code: "ContainerNotFound"}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &storage{answers: map[string]answer{test.at: test.answer}}
			if name == "no container" {
				s.answers["write"] = test.answer
			}
			var said []string
			g := guardOf(s, &said)
			g.WithoutRight = test.asked
			changed := false
			err := g.Do(t.Context(), func(context.Context) error { changed = true; return nil })
			if changed != test.goesOn || (err == nil) != test.goesOn || err != nil && !errors.Is(err, lock.ErrUnlocked) {
				t.Errorf("changed %v: %v", changed, err)
			}
			if test.goesOn && len(said) != 1 {
				t.Errorf("said %q", said)
			}
			if name == "no right" && !strings.Contains(err.Error(), "--allow-unlocked") {
				t.Errorf("no hint: %v", err)
			}
			if name == "no name of the holder" && s.asked[len(s.asked)-1] != "release" {
				t.Errorf("the lease stays: %v", s.asked)
			}
		})
	}
}

// TestUnnamedHolder checks that a lock counts although the name of its holder cannot be read.
func TestUnnamedHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storage{answers: map[string]answer{
			"acquire": {status: http.StatusConflict, code: "LeaseAlreadyPresent"}, "read": {status: http.StatusServiceUnavailable, code: "ServerBusy"},
		}}
		var said []string
		err := guardOf(s, &said).Do(t.Context(), func(context.Context) error {
			t.Error("the cluster was changed")
			return nil
		})
		if !errors.Is(err, lock.ErrHeld) {
			t.Errorf("got %v", err)
		}
	})
}

// TestHangingRenewal checks that a change ends before its lock does, although a renewal gets no answer.
func TestHangingRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storage{answers: map[string]answer{"renew": {hangs: true}}}
		var said []string
		began := time.Now()
		err := guardOf(s, &said).Do(t.Context(), func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(10 * time.Minute):
				return nil
			}
		})
		if took := time.Since(began); !errors.Is(err, lock.ErrHeld) || took >= dataplane.LockTime {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
