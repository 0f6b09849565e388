package emulator

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"kaz/internal/emulator/behaviour"
)

// limit is a token bucket: how many tokens it holds and how many come back in a
// second.
type limit struct {
	name     string
	capacity float64
	refill   float64 // per second
}

func perMinute(name string, refill, capacity float64) limit {
	return limit{name: name, capacity: capacity, refill: refill / 60}
}

// perFiveMinutes is a limit on the requests in five minutes.
func perFiveMinutes(name string, requests float64) limit {
	const window = 300
	return limit{name: name, capacity: requests, refill: requests / window}
}

type bucket struct {
	tokens float64
	at     time.Time
}

// throttle counts requests as Azure does.
type throttle struct {
	on      bool
	mu      sync.Mutex
	buckets map[string]*bucket
}

// claim is one bucket that a request takes a token from.
type claim struct {
	limit limit
	key   string
}

// take takes one token of each claim, or none: then it names the bucket that is
// empty and when it will not be.
func (t *throttle) take(now time.Time, claims []claim) (remaining []int, empty *claim, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prune(now)
	found := make([]*bucket, len(claims))
	for i, c := range claims {
		found[i] = t.bucket(now, c)
		if found[i].tokens < 1 {
			return nil, &claims[i], time.Duration((1 - found[i].tokens) / c.limit.refill * float64(time.Second))
		}
	}
	for _, b := range found {
		b.tokens--
		remaining = append(remaining, int(b.tokens))
	}
	return remaining, nil, 0
}

func (t *throttle) bucket(now time.Time, c claim) *bucket {
	key := c.limit.name + " " + c.key
	b := t.buckets[key]
	if b == nil {
		b = &bucket{tokens: c.limit.capacity, at: now}
		t.buckets[key] = b
		return b
	}
	b.tokens = math.Min(c.limit.capacity, b.tokens+now.Sub(b.at).Seconds()*c.limit.refill)
	b.at = now
	return b
}

// prune forgets buckets that nobody used for a while, which are full.
func (t *throttle) prune(now time.Time) {
	const many, while = 50000, 2 * time.Hour
	if len(t.buckets) < many {
		return
	}
	for key, b := range t.buckets {
		if now.Sub(b.at) > while {
			delete(t.buckets, key)
		}
	}
}

// class is ARM's class of an operation.
func class(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead:
		return "reads"
	case http.MethodDelete:
		return "deletes"
	}
	return "writes"
}

// armClaims are the buckets of ARM itself: of the caller, and of all callers.
func (e *Emulator) armClaims(r *request) []claim {
	name := class(r.method)
	own := limit{name: "arm " + name, capacity: 200, refill: 10}
	if name == "reads" {
		own.capacity, own.refill = 250, 25
	}
	const all = 15
	global := limit{name: "arm global " + name, capacity: all * own.capacity, refill: all * own.refill}
	actor := ""
	if r.principal != nil {
		actor = r.principal.ObjectID
	}
	return []claim{{own, actor}, {global, ""}}
}

// admit counts a request and refuses it when there were too many.
func (e *Emulator) admit(r *request) error {
	claims := e.armClaims(r)
	if !e.throttle.on {
		e.armHeaders(r, []int{int(claims[0].limit.capacity) - 1, int(claims[1].limit.capacity) - 1})
		return nil
	}
	now := time.Now()
	remaining, empty, wait := e.throttle.take(now, claims)
	if empty != nil {
		return armThrottled(r, claims[0].key, wait, e.options.Subscription)
	}
	e.armHeaders(r, remaining)
	claims, refuse := e.providerClaims(r)
	if len(claims) == 0 {
		return nil
	}
	remaining, empty, wait = e.throttle.take(now, claims)
	if empty != nil {
		return refuse(empty.limit, wait)
	}
	if !strings.HasPrefix(claims[0].limit.name, "Microsoft.Compute/") {
		return nil
	}
	left := make([]string, len(claims))
	for i, c := range claims {
		left[i] = c.limit.name + ";" + strconv.Itoa(remaining[i])
	}
	r.keep("x-ms-ratelimit-remaining-resource", strings.Join(left, ","))
	r.keep("x-ms-request-charge", "1")
	return nil
}

func (e *Emulator) armHeaders(r *request, remaining []int) {
	name := class(r.method)
	r.keep("x-ms-ratelimit-remaining-subscription-"+name, strconv.Itoa(remaining[0]))
	r.keep("x-ms-ratelimit-remaining-subscription-global-"+name, strconv.Itoa(remaining[1]))
}

func wholeSeconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

func armThrottled(r *request, actor string, wait time.Duration, subscription string) error {
	after := wholeSeconds(wait)
	err := gateway(http.StatusTooManyRequests, "SubscriptionRequestsThrottled",
		"Number of '%s' requests for subscription '%s' actor '%s' exceeded. Please try again after '%d' seconds after additional tokens are available. Refer to https://aka.ms/arm-throttling for additional information.",
		strings.TrimSuffix(class(r.method), "s"), subscription, actor, after)
	err.RetryAfter = after
	return err
}

// refusal makes a provider's 429.
type refusal func(l limit, wait time.Duration) error

// providerClaims are the buckets of the resource provider.
func (e *Emulator) providerClaims(r *request) ([]claim, refusal) {
	namespace := ""
	switch {
	case r.polled != nil:
		namespace = r.polled.Resource.Namespace()
	case r.kind != nil:
		namespace, _, _ = strings.Cut(r.kind.Name, "/")
	}
	switch strings.ToLower(namespace) {
	case "microsoft.compute":
		return computeClaims(r), computeThrottled
	case "microsoft.network":
		return networkClaims(r), networkThrottled
	case "microsoft.storage":
		return storageClaims(r), storageThrottled
	}
	return nil, nil
}

func networkClaims(r *request) []claim {
	read := class(r.method) == "reads"
	dns := r.kind != nil && strings.Contains(strings.ToLower(r.kind.Name), "dnszones")
	switch {
	case read && dns:
		return []claim{{perFiveMinutes("network DNS reads", 500), ""}}
	case read:
		return []claim{{perFiveMinutes("network reads", 10000), ""}}
	}
	return []claim{{perFiveMinutes("network writes", 1000), ""}}
}

func networkThrottled(_ limit, wait time.Duration) error {
	err := behaviour.Refusal(http.StatusTooManyRequests, "TooManyRequests", "The server rejected the request because too many requests have been received for this subscription.")
	err.RetryAfter = wholeSeconds(wait)
	return err
}

func storageClaims(r *request) []claim {
	switch {
	case class(r.method) != "reads":
		return []claim{{limit{name: "Write", capacity: 1200, refill: 1200.0 / 3600}, ""}}
	case r.list:
		return []claim{{perFiveMinutes("List", 100), ""}}
	}
	return []claim{{perFiveMinutes("Read", 800), ""}}
}

func storageThrottled(l limit, wait time.Duration) error {
	err := behaviour.Refusal(http.StatusTooManyRequests, "TooManyRequests", "The request is being throttled as the limit has been reached for operation type - %s. For more information, see - https://aka.ms/srpthrottlinglimits", l.name)
	err.RetryAfter = wholeSeconds(wait)
	return err
}

// computePolicy has the buckets of one class of compute requests: of the resource
// and of the subscription, each as refill per minute and capacity.
type computePolicy struct {
	name                       string
	resource, resourceMax      float64
	subscription, subscribeMax float64
}

func computePolicies() map[string]computePolicy {
	all := []computePolicy{
		{"PutVM", 4, 12, 500, 1500}, {"UpdateVM", 4, 12, 500, 1500}, {"DeleteVM", 4, 12, 500, 1500},
		{"LowCostGetVM", 12, 36, 8000, 24000}, {"HighCostGetVM", 0, 0, 300, 900}, {"GetOperation", 15, 45, 5000, 15000},
		{"PutVMScaleSet", 4, 12, 125, 375}, {"UpdateVMScaleSet", 4, 12, 500, 1500}, {"DeleteVMScaleSet", 4, 12, 175, 525},
		{"LowCostGetVMScaleSet", 12, 36, 800, 2400}, {"HighCostGetVMScaleSet", 10, 30, 360, 1080},
		{"UpdateVMScaleSetVM", 4, 12, 500, 1500}, {"DeleteVMScaleSetVM", 4, 12, 500, 1500}, {"GetVMScaleSetVM", 12, 36, 2000, 6000},
		{"CreateUpdateDisks", 0, 0, 1000.0 / 3, 1000}, {"DeleteDisks", 0, 0, 1000, 3000}, {"LowCostGet", 0, 0, 4000.0 / 3, 4000},
		{"HighCostGet", 0, 0, 80, 240},
	}
	byName := map[string]computePolicy{}
	for _, p := range all {
		byName[p.name] = p
	}
	return byName
}

func computeClaims(r *request) []claim {
	name, key := computeClass(r)
	p := computePolicies()[name]
	var claims []claim
	if p.resourceMax > 0 {
		claims = append(claims, claim{perMinute("Microsoft.Compute/"+name+"Resource", p.resource, p.resourceMax), key})
	}
	return append(claims, claim{perMinute("Microsoft.Compute/"+name+"SubscriptionMaximum", p.subscription, p.subscribeMax), ""})
}

// computeClass is the policy for a request and the resource it counts for.
func computeClass(r *request) (policy, key string) {
	if r.polled != nil {
		return "GetOperation", r.polled.ID
	}
	key = r.id.Key()
	switch strings.ToLower(strings.TrimPrefix(strings.ToLower(r.kind.Name), "microsoft.compute/")) {
	case "virtualmachines":
		return vmClass(r), key
	case "virtualmachines/extensions":
		return getOr(r, "LowCostGetVM", "LowCostGetVM", "UpdateVM"), r.id.Parent().Key()
	case "virtualmachinescalesets":
		return scaleSetClass(r), key
	case "virtualmachinescalesets/virtualmachines":
		if r.list {
			return "HighCostGetVMScaleSet", key
		}
		if r.method == http.MethodDelete || strings.EqualFold(r.action, "deallocate") {
			return "DeleteVMScaleSetVM", key
		}
		return getOr(r, "GetVMScaleSetVM", "", "UpdateVMScaleSetVM"), key
	}
	if r.method == http.MethodDelete {
		return "DeleteDisks", key
	}
	return getOr(r, "LowCostGet", "HighCostGet", "CreateUpdateDisks"), key
}

func getOr(r *request, get, list, write string) string {
	switch {
	case class(r.method) != "reads":
		return write
	case r.list:
		return list
	}
	return get
}

func vmClass(r *request) string {
	switch {
	case r.method == http.MethodDelete, strings.EqualFold(r.action, "deallocate"):
		return "DeleteVM"
	case r.method == http.MethodPut:
		return "PutVM"
	}
	return getOr(r, "LowCostGetVM", "HighCostGetVM", "UpdateVM")
}

func scaleSetClass(r *request) string {
	switch {
	case r.method == http.MethodDelete, strings.EqualFold(r.action, "deallocate"), strings.EqualFold(r.action, "delete"):
		return "DeleteVMScaleSet"
	case r.method == http.MethodPut:
		return "PutVMScaleSet"
	case strings.EqualFold(r.action, "instanceView"):
		return "HighCostGetVMScaleSet"
	}
	return getOr(r, "LowCostGetVMScaleSet", "HighCostGetVMScaleSet", "UpdateVMScaleSet")
}

func computeThrottled(l limit, wait time.Duration) error {
	group := strings.TrimPrefix(l.name, "Microsoft.Compute/")
	err := behaviour.Refusal(http.StatusTooManyRequests, "OperationNotAllowed", "The server rejected the request because too many requests have been received for this subscription.")
	err.Details = []*behaviour.Error{{
		Code: "TooManyRequests", Target: group,
		Message: `{"operationGroup":"` + group + `","allowedRequestCount":` + strconv.Itoa(int(l.capacity)) + `,"measuredRequestCount":` + strconv.Itoa(int(l.capacity)+1) + `}`,
	}}
	err.Bare = true
	err.RetryAfter = wholeSeconds(wait)
	return err
}
