package budget

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// allowance is the number of requests that Azure will accept, as far as its answers show. It mirrors a token bucket
// of Azure. It also counts its own requests, because answers come seconds after Azure has counted a request.
type allowance struct {
	limited bool // Azure says how many are left, or has said nothing yet
	counted bool // Azure has said how many are left before
	tokens  float64
	at      time.Time // the time of tokens
	most    float64
	refill  float64 // per second
}

// newAllowance is what Azure Resource Manager grants each caller in a subscription. If Azure grants more, its first
// answer says so.
func newAllowance(key gateKey, now time.Time) allowance {
	a := allowance{limited: key.question == "", most: 200, refill: 10, at: now}
	if key.class == reads {
		a.most, a.refill = 250, 25
	}
	a.tokens = a.most
	return a
}

// spare is the number of requests that are left to other clients of the same principal.
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

// learn corrects the allowance by an answer. The number left is what Azure had left when it counted the answered
// request, -1 if the answer does not say. The time ago is how long ago the request was sent. Azure counts in no fixed
// order, so it may have counted the others before this request or not. So learn changes the own count only as far as
// it cannot be right.
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
