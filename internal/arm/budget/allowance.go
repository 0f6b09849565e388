package budget

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// allowance is how many requests Azure will accept, as far as its answers tell: a
// token bucket of Azure's that we count along with, because answers come seconds
// after Azure has counted a request.
type allowance struct {
	limited bool // Azure says how many are left, or has said nothing yet
	counted bool // Azure has said how many are left before
	tokens  float64
	at      time.Time // when there were so many
	most    float64
	refill  float64 // per second
}

// newAllowance is what Azure Resource Manager grants each caller in a subscription.
// Where it grants more, its first answer tells.
func newAllowance(key gateKey, now time.Time) allowance {
	a := allowance{limited: key.question == "", most: 200, refill: 10, at: now}
	if key.class == reads {
		a.most, a.refill = 250, 25
	}
	a.tokens = a.most
	return a
}

// spare are the requests that are left to other clients of the same principal.
const spare = 3

// wait is the time until one more request may be sent.
func (a *allowance) wait(now time.Time) time.Duration {
	if !a.limited {
		return 0
	}
	a.grow(now)
	if missing := 1 + spare - a.tokens; missing > 0 {
		return time.Duration(missing/a.refill*float64(time.Second)) + 1
	}
	return 0
}

func (a *allowance) grow(now time.Time) {
	a.tokens = min(a.tokens+a.refill*now.Sub(a.at).Seconds(), a.most)
	a.at = now
}

func (a *allowance) take() { a.tokens-- }

// learn takes what an answer says: how many requests were left when Azure counted
// its request (-1: it does not say), which was sent so long ago. So many others may
// or may not have been counted by then, because Azure counts in no order; our own
// count is corrected only as far as it cannot be right.
func (a *allowance) learn(left, others int, now time.Time, ago time.Duration) {
	if left < 0 {
		a.limited = a.limited && a.counted // gateways leave it out of their errors
		return
	}
	a.limited, a.counted = true, true
	a.most = max(a.most, float64(left))
	a.grow(now)
	most := float64(left) + a.refill*ago.Seconds()
	a.tokens = min(max(a.tokens, most-float64(others)), most)
}

// remaining is the smallest number of requests that Azure says are left, -1 if it
// does not say.
func remaining(h http.Header, key gateKey) int {
	least := -1
	note := func(s string) {
		if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil && n >= 0 && (least < 0 || n < least) {
			least = n
		}
	}
	if key.question != "" { // the headers are about all questions
		return least
	}
	for _, scope := range []string{"Subscription", "Tenant", "Subscription-Global"} {
		note(h.Get("X-Ms-Ratelimit-Remaining-" + scope + "-" + string(key.class)))
	}
	note(h.Get("X-Ms-Ratelimit-Remaining-Subscription-Resource-Requests"))
	note(h.Get("X-Ms-Ratelimit-Remaining-Subscription-Resource-Entities-Read"))
	return least
}
