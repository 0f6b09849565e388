package file_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"kaz/internal/azure/storage"
	"kaz/internal/localazure/core"
)

// throttled is a fault of the creation of a share: Azure asks to wait.
func throttled(share string, seconds, times int) core.Fault {
	return core.Fault{Method: "PUT", Type: storage.Shares, Name: share, Fault: core.FaultError, Status: 429, RetryAfter: seconds,
		Times: times}
}

// TestThrottled checks row 36. The driver waits for as long as Azure asks, at most as long as the request may take. The
// provisioner repeats the request on the error.
func TestThrottled(t *testing.T) {
	for what, c := range map[string]struct {
		fault   core.Fault
		want    codes.Code
		atLeast time.Duration
		atMost  time.Duration
	}{
		"once":         {throttled("pvc-1", 7, 1), codes.OK, 7 * time.Second, 10 * time.Second},
		"three times":  {throttled("pvc-1", 7, 3), codes.OK, 21 * time.Second, 30 * time.Second},
		"for an hour":  {throttled("pvc-1", 3600, 0), codes.Unavailable, 0, time.Minute},
		"for ever":     {throttled("pvc-1", 7, 0), codes.Unavailable, 7 * time.Second, 11 * time.Minute},
		"the accounts": {core.Fault{Method: "GET", Fault: core.FaultError, Status: 429, RetryAfter: 3600}, codes.Unavailable, 0, time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newDriverCluster(t, core.Options{})
				if err := w.SetFaults([]core.Fault{c.fault}); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err := w.CreateVolume(t.Context(), request("pvc-1"))
				wantCode(t, what, err, c.want)
				if took := time.Since(began); took < c.atLeast || took > c.atMost {
					t.Errorf("the request took %s, want %s to %s", took, c.atLeast, c.atMost)
				}
			})
		})
	}
}

// TestOthersWhileOneWaits checks row 36: a volume whose creation waits holds nothing that requests for other volumes need, and
// nothing after its request ended.
func TestOthersWhileOneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{})
		other, source := w.volume("pvc-other").GetVolumeId(), w.volume("pvc-source").GetVolumeId()
		if err := w.SetFaults([]core.Fault{throttled("pvc-1", 300, 1)}); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithTimeout(t.Context(), time.Minute)
		defer end()
		ended := make(chan error, 1)
		go func() {
			_, err := w.CreateVolume(ctx, request("pvc-1"))
			ended <- err
		}()
		synctest.Wait()
		began := time.Now()
		_, err := w.CreateVolume(t.Context(), request("pvc-1"))
		wantCode(t, "the same volume", err, codes.Aborted)
		if err := w.remove(other); err != nil {
			t.Errorf("delete another volume: %v", err)
		}
		if w.volume("pvc-source").GetVolumeId() != source {
			t.Error("another volume is not found")
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("other requests took %s", took)
		}
		wantCode(t, "the end of the request", <-ended, codes.DeadlineExceeded)
		if id := w.volume("pvc-1").GetVolumeId(); !w.exists(id) {
			t.Error("the volume has no share")
		}
		if took := time.Since(began); took < 4*time.Minute || took > 6*time.Minute {
			t.Errorf("the volume was created after %s, want the 5 minutes that Azure asked for", took)
		}
	})
}

// TestShareBeingDeleted checks row 37 and defect 33: the error names the cause, ends with the request, and the next request
// creates the share.
func TestShareBeingDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newDriverCluster(t, core.Options{})
		const message = "The specified share is being deleted. Try operation later."
		if err := w.SetFaults([]core.Fault{{Method: "PUT", Type: storage.Shares, Name: "pvc-1", Fault: core.FaultError, Status: 409,
			Code: "ShareBeingDeleted", Message: message, Times: 2}}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			ctx, end := context.WithTimeout(t.Context(), time.Minute)
			began := time.Now()
			_, err := w.CreateVolume(ctx, request("pvc-1"))
			end()
			wantCode(t, "37", err, codes.Aborted)
			if err == nil || !strings.Contains(err.Error(), "ShareBeingDeleted") || !strings.Contains(err.Error(), message) {
				t.Errorf("%v does not name the cause", err)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("the request took %s, longer than its context", took)
			}
		}
		if id := w.volume("pvc-1").GetVolumeId(); !w.exists(id) {
			t.Error("the volume has no share")
		}
	})
}
