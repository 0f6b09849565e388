package arm_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/arm"
	"kaz/internal/azure"
	"kaz/internal/azure/compute"
)

// attachments is an Azure with operations on disks that take a time. It answers one poll of each slowly.
type attachments struct {
	takes, slow time.Duration // the operation; the poll that is sent after slowAt
	slowAt      time.Duration
	retryAfter  string

	mu    sync.Mutex
	began time.Time
	polls []time.Duration // when they arrived, since the operation began
}

func (a *attachments) Do(req *http.Request) (*http.Response, error) {
	a.mu.Lock()
	if req.Method == http.MethodPost {
		a.began = time.Now()
		a.mu.Unlock()
		return answer(req, 200, `{"dataDisks":[]}`, map[string]string{
			"Azure-AsyncOperation": "https://management.test/operations/1", "Retry-After": a.retryAfter}), nil
	}
	at := time.Since(a.began)
	a.polls = append(a.polls, at)
	late := a.slow > 0 && at >= a.slowAt
	if late {
		a.slowAt = time.Hour
	}
	a.mu.Unlock()
	state := "InProgress"
	if at >= a.takes {
		state = "Succeeded"
	}
	if late {
		select {
		case <-time.After(a.slow):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	return answer(req, 200, `{"status":"`+state+`"}`, map[string]string{"Retry-After": a.retryAfter}), nil
}

func (a *attachments) attach(t *testing.T, machine azure.ID) (answer string, took time.Duration) {
	t.Helper()
	client, err := arm.New(arm.Config{Endpoint: "https://management.test", Transport: a})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	doc, err := azure.Do(t.Context(), client, azure.Request{Verb: azure.Post, ID: machine,
		Action: "attachDetachDataDisks", Body: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return string(doc), time.Since(began)
}

// The end of an attachment is noticed within 0.4 s if it takes a usual time, and later within a sixteenth of its time and
// within 4 s. A usual one takes few polls. Azure allows 45 polls of an operation and 15 more a minute. If Azure asks
// for a later poll, the poll comes later. The result is the body of the first reply.
func TestAttachmentsArePolledWhenTheyEnd(t *testing.T) {
	machine := instance("set", 1).Parent().Parent().Resource(compute.VirtualMachines, "vm")
	const first, often = 500 * time.Millisecond, 400 * time.Millisecond
	for _, c := range []struct {
		name       string
		machine    azure.ID
		takes      time.Duration
		retryAfter string
		late       time.Duration
		first      time.Duration
		polls      int
	}{
		{"a very fast one", machine, 600 * time.Millisecond, "", time.Second, first, 2},
		{"a fast one of a machine", machine, 4 * time.Second, "", time.Second / 2, first, 6},
		{"of a machine", machine, 7200 * time.Millisecond, "", often, first, 13},
		{"of a machine, 90 %", machine, 9700 * time.Millisecond, "", often, first, 19},
		{"the slowest of 40 of a machine", machine, 11500 * time.Millisecond, "", 12 * time.Second / 24, first, 24},
		{"of an instance", instance("set", 1), 15 * time.Second, "", 16 * time.Second / 24, first, 21},
		{"of an instance, 90 %", instance("set", 1), 45 * time.Second, "", 48 * time.Second / 16, first, 46},
		{"a very slow one", instance("set", 1), 3 * time.Minute, "", 4 * time.Second, first, 88},
		{"Azure asks for time", machine, 7 * time.Second, "3", 3 * time.Second, 3 * time.Second, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &attachments{takes: c.takes, retryAfter: c.retryAfter}
				answer, took := a.attach(t, c.machine)
				if answer != `{"dataDisks":[]}` {
					t.Errorf("the answer is %s", answer)
				}
				if late := took - c.takes; late < 0 || late > c.late {
					t.Errorf("the end was noticed %s late, want at most %s", late, c.late)
				}
				if a.polls[0] != c.first {
					t.Errorf("the first poll came after %s, want %s", a.polls[0], c.first)
				}
				if len(a.polls) > c.polls {
					t.Errorf("%d polls, want at most %d", len(a.polls), c.polls)
				}
				for i, at := range a.polls {
					if allowed := 45 + int(at.Minutes()*15); i+1 > allowed {
						t.Errorf("%d polls in %s, Azure allows %d", i+1, at, allowed)
					}
				}
			})
		})
	}
}

// A poll that Azure answers late does not hold up the next one.
func TestASlowPollIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &attachments{takes: 5 * time.Second, slow: 20 * time.Second, slowAt: 4900 * time.Millisecond}
		if _, took := a.attach(t, instance("set", 1)); took > 6500*time.Millisecond {
			t.Errorf("the end was noticed after %s", took)
		}
	})
}

// Disks of the instances of one scale set are attached at once, unlike other writes of instances.
func TestAttachmentsTakeNoTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scaleSets{allowed: 100, flying: map[azure.ID]int{}, due: map[string]time.Time{}}
		client, err := arm.New(arm.Config{Endpoint: "https://management.test", Transport: s})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				_, err := client.Begin(t.Context(), azure.Request{Verb: azure.Post, ID: instance("set", i), Action: "attachDetachDataDisks"})
				if err != nil && !strings.Contains(err.Error(), "operation") {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(began); took > 2*firstAnswer {
			t.Errorf("10 requests took %s, one takes %s", took, firstAnswer)
		}
	})
}
