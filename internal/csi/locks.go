package csi

import (
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Locks admits one operation for each key. The zero value is ready for use.
type Locks struct{ held sync.Map }

// Take takes the locks of all keys, or none and returns an error with the code Aborted. Letter case does not matter.
func (l *Locks) Take(keys ...string) (release func(), err error) {
	var taken []string
	release = func() {
		for _, key := range taken {
			l.held.Delete(key)
		}
	}
	for _, key := range keys {
		key = strings.ToLower(key)
		if _, busy := l.held.LoadOrStore(key, true); busy {
			release()
			return nil, status.Errorf(codes.Aborted, "another operation on %s is in flight; it is tried again", key)
		}
		taken = append(taken, key)
	}
	return release, nil
}
