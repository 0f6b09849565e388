package core_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

func TestARMThrottlesReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, core.Options{Throttle: true})
		a.group()
		const bucket = 250
		for i := range bucket {
			got := a.do("GET", group, "")
			if want := strconv.Itoa(bucket - 1 - i); got.header.Get("x-ms-ratelimit-remaining-subscription-reads") != want {
				t.Fatalf("read %d: %d, %s left, want %s", i, got.status,
					got.header.Get("x-ms-ratelimit-remaining-subscription-reads"), want)
			}
		}
		got := a.do("GET", group, "")
		if got.status != 429 || got.code() != "SubscriptionRequestsThrottled" || got.header.Get("Retry-After") != "1" {
			t.Fatalf("one read too many: %d %v", got.status, got.body)
		}
		if got := a.do("PUT", group, `{"location":"eastus"}`); got.status != 200 {
			t.Errorf("writes are counted apart: %d", got.status)
		}
		<-time.After(time.Second)
		if got := a.do("GET", group, ""); got.status != 200 || got.header.Get("x-ms-ratelimit-remaining-subscription-reads") != "24" {
			t.Errorf("a second later: %d, %s left", got.status, got.header.Get("x-ms-ratelimit-remaining-subscription-reads"))
		}
	})
}

func TestComputeThrottlesWritesOfOneResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := start(t, core.Options{Throttle: true})
		a.group()
		const bucket = 12
		for i := range bucket {
			got := a.must("PUT", machine, `{"location":"eastus"}`)
			want := "Microsoft.Compute/PutVMResource;" + strconv.Itoa(bucket-1-i)
			if left := got.header.Get("x-ms-ratelimit-remaining-resource"); !strings.HasPrefix(left, want+",") {
				t.Fatalf("write %d: %s, want %s", i, left, want)
			}
		}
		got := a.do("PUT", machine, `{"location":"eastus"}`)
		details := behaviour.Objects(got.body, "details")
		if got.status != 429 || got.body["code"] != "OperationNotAllowed" || len(details) != 1 ||
			details[0]["code"] != "TooManyRequests" || got.header.Get("Retry-After") != "15" {
			t.Fatalf("one write too many: %d %v %v", got.status, got.body, got.header)
		}
		if got := a.do("PUT", machine+"2", `{"location":"eastus"}`); got.status != 201 {
			t.Errorf("another machine: %d", got.status)
		}
		<-time.After(15 * time.Second)
		a.must("PUT", machine, `{"location":"eastus"}`)
	})
}

// Polls are reads of ARM and count for the provider.
func TestPollsAreCounted(t *testing.T) {
	a := start(t, core.Options{Throttle: true})
	a.group()
	created := a.must("PUT", machine, `{"location":"eastus"}`)
	got := a.poll(created, "Azure-AsyncOperation")
	if got.header.Get("x-ms-ratelimit-remaining-subscription-reads") != "249" ||
		!strings.HasPrefix(got.header.Get("x-ms-ratelimit-remaining-resource"), "Microsoft.Compute/GetOperationResource;44,") {
		t.Errorf("after a poll: %v", got.header)
	}
}
