// Package throttle refuses too many requests to the local Azure with the token buckets
// that Azure has. Layer L2: azure and behaviour.
package throttle

import (
	"cmp"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
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
	limit  limit
	tokens float64
	at     time.Time
}

// level is how many tokens the bucket has at a time.
func (b *bucket) level(now time.Time) float64 {
	return math.Min(b.limit.capacity, b.tokens+now.Sub(b.at).Seconds()*b.limit.refill)
}

// Budget is what is left of a rate limit.
type Budget struct {
	// Name of the limit, Of what it counts for: a caller or a resource, "" for all.
	Name, Of    string
	Left, Total int // requests
}

// Budgets returns what is left of the limits that requests have used, at most a number of them: those with the smallest share left.
func (t *Limiter) Budgets(now time.Time, most int) []Budget {
	t.mu.Lock()
	all := make([]Budget, 0, len(t.buckets))
	for key, b := range t.buckets {
		all = append(all, Budget{b.limit.name, strings.TrimPrefix(key[len(b.limit.name):], " "), int(b.level(now)), int(b.limit.capacity)})
	}
	t.mu.Unlock()
	slices.SortFunc(all, func(a, b Budget) int {
		return cmp.Or(cmp.Compare(a.Left*b.Total, b.Left*a.Total), strings.Compare(a.Name, b.Name), strings.Compare(a.Of, b.Of))
	})
	return all[:min(most, len(all))]
}

// Limiter counts requests as Azure does. It is safe for use by several goroutines.
type Limiter struct {
	on      atomic.Bool
	mu      sync.Mutex
	buckets map[string]*bucket
}

// New returns a limiter with full buckets. A limiter that is off admits everything.
func New(on bool) *Limiter {
	t := &Limiter{}
	t.Switch(on)
	return t
}

// Switch turns the limiter on, with full buckets, or off.
func (t *Limiter) Switch(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buckets = map[string]*bucket{}
	t.on.Store(on)
}

// On reports whether the limiter is on.
func (t *Limiter) On() bool { return t.on.Load() }

// Request is what a limiter needs to know of a request.
type Request struct {
	Method string
	// Actor is the object id of the caller.
	Actor string
	// Subscription is named in refusals.
	Subscription string
	// Type is the full resource type, "" for a request that is to none.
	Type string
	// ID is the resource, or the scope of a list.
	ID     azure.ID
	List   bool
	Action string
	// Polled is the operation that the request polls, nil for none.
	Polled *behaviour.Operation
}

// namespace is the provider that a request is for, "" for none.
func (r Request) namespace() string {
	if r.Polled != nil {
		return r.Polled.Resource.Namespace()
	}
	namespace, _, _ := strings.Cut(r.Type, "/")
	return namespace
}

// claim is one bucket that a request takes a token from.
type claim struct {
	limit limit
	key   string
}

// take takes a token of each claim, or none: then it returns the empty bucket and how
// long it takes until that has a token.
func (t *Limiter) take(now time.Time, claims []claim) (remaining []int, empty *claim, wait time.Duration) {
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

func (t *Limiter) bucket(now time.Time, c claim) *bucket {
	key := c.limit.name + " " + c.key
	b := t.buckets[key]
	if b == nil {
		b = &bucket{limit: c.limit, tokens: c.limit.capacity, at: now}
		t.buckets[key] = b
		return b
	}
	b.tokens = b.level(now)
	b.at = now
	return b
}

// prune forgets buckets that were not used for a while, which are full.
func (t *Limiter) prune(now time.Time) {
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
func armClaims(r Request) []claim {
	name := class(r.Method)
	own := limit{name: "arm " + name, capacity: 200, refill: 10}
	if name == "reads" {
		own.capacity, own.refill = 250, 25
	}
	const all = 15
	global := limit{name: "arm global " + name, capacity: all * own.capacity, refill: all * own.refill}
	return []claim{{own, r.Actor}, {global, ""}}
}

// Admit counts a request at a time. It returns headers of the reply, whatever that
// becomes, and the refusal of a request too many.
func (t *Limiter) Admit(now time.Time, r Request) (http.Header, error) {
	h := http.Header{}
	claims := armClaims(r)
	if !t.on.Load() {
		armHeaders(h, r, []int{int(claims[0].limit.capacity) - 1, int(claims[1].limit.capacity) - 1})
		return h, nil
	}
	remaining, empty, wait := t.take(now, claims)
	if empty != nil {
		return h, armThrottled(r, wait)
	}
	armHeaders(h, r, remaining)
	claims, refuse := providerClaims(r)
	if len(claims) == 0 {
		return h, nil
	}
	remaining, empty, wait = t.take(now, claims)
	if empty != nil {
		return h, refuse(empty.limit, wait)
	}
	if !strings.HasPrefix(claims[0].limit.name, "Microsoft.Compute/") {
		return h, nil
	}
	left := make([]string, len(claims))
	for i, c := range claims {
		left[i] = c.limit.name + ";" + strconv.Itoa(remaining[i])
	}
	h.Set("x-ms-ratelimit-remaining-resource", strings.Join(left, ","))
	h.Set("x-ms-request-charge", "1")
	return h, nil
}

func armHeaders(h http.Header, r Request, remaining []int) {
	name := class(r.Method)
	h.Set("x-ms-ratelimit-remaining-subscription-"+name, strconv.Itoa(remaining[0]))
	h.Set("x-ms-ratelimit-remaining-subscription-global-"+name, strconv.Itoa(remaining[1]))
}

func wholeSeconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }

func armThrottled(r Request, wait time.Duration) error {
	after := wholeSeconds(wait)
	err := behaviour.Refusal(http.StatusTooManyRequests, "SubscriptionRequestsThrottled",
		"Number of '%s' requests for subscription '%s' actor '%s' exceeded. Please try again after '%d' seconds after additional "+
			"tokens are available. Refer to https://aka.ms/arm-throttling for additional information.",
		strings.TrimSuffix(class(r.Method), "s"), r.Subscription, r.Actor, after)
	err.Gateway, err.RetryAfter = true, after
	return err
}

// refusal makes a provider's 429.
type refusal func(l limit, wait time.Duration) error

// providerClaims are the buckets of the resource provider.
func providerClaims(r Request) ([]claim, refusal) {
	switch strings.ToLower(r.namespace()) {
	case "microsoft.compute":
		return computeClaims(r), computeThrottled
	case "microsoft.network":
		return networkClaims(r), networkThrottled
	case "microsoft.storage":
		return storageClaims(r), storageThrottled
	}
	return nil, nil
}

// zoneClaims are the buckets of one DNS zone for its record sets, as Microsoft's page on limits has them. Public zones take more.
func zoneClaims(r Request) []claim {
	zone := r.ID
	if r.ID.Is(r.Type) {
		zone = r.ID.Parent()
	}
	limits := map[string]float64{"lists": 60, "reads": 2000, "writes": 200}
	if strings.Contains(strings.ToLower(r.Type), "privatednszones") {
		limits = map[string]float64{"lists": 100, "reads": 200, "writes": 60}
	}
	name := "writes"
	switch {
	case r.List:
		name = "lists"
	case class(r.Method) == "reads":
		name = "reads"
	}
	return []claim{{perMinute("record sets "+name, limits[name], limits[name]), zone.Key()}}
}

func networkClaims(r Request) []claim {
	read := class(r.Method) == "reads"
	dns := strings.Contains(strings.ToLower(r.Type), "dnszones")
	if dns && strings.Count(r.Type, "/") == 2 && !strings.HasSuffix(strings.ToLower(r.Type), "/virtualnetworklinks") {
		return zoneClaims(r)
	}
	switch {
	case read && dns:
		return []claim{{perFiveMinutes("network DNS reads", 500), ""}}
	case read:
		return []claim{{perFiveMinutes("network reads", 10000), ""}}
	}
	return []claim{{perFiveMinutes("network writes", 1000), ""}}
}

func networkThrottled(_ limit, wait time.Duration) error {
	err := behaviour.Refusal(http.StatusTooManyRequests, "TooManyRequests",
		"The server rejected the request because too many requests have been received for this subscription.")
	err.RetryAfter = wholeSeconds(wait)
	return err
}

func storageClaims(r Request) []claim {
	switch {
	case class(r.Method) != "reads":
		return []claim{{limit{name: "Write", capacity: 1200, refill: 1200.0 / 3600}, ""}}
	case r.List:
		return []claim{{perFiveMinutes("List", 100), ""}}
	}
	return []claim{{perFiveMinutes("Read", 800), ""}}
}

func storageThrottled(l limit, wait time.Duration) error {
	err := behaviour.Refusal(http.StatusTooManyRequests, "TooManyRequests",
		"The request is being throttled as the limit has been reached for operation type - %s. For more information, see - "+
			"https://aka.ms/srpthrottlinglimits", l.name)
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
		{"AttachDetachVMDisks", 4, 12, 500, 1500},
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

func computeClaims(r Request) []claim {
	name, key := computeClass(r)
	p := computePolicies()[name]
	var claims []claim
	if p.resourceMax > 0 {
		claims = append(claims, claim{perMinute("Microsoft.Compute/"+name+"Resource", p.resource, p.resourceMax), key})
	}
	return append(claims, claim{perMinute("Microsoft.Compute/"+name+"SubscriptionMaximum", p.subscription, p.subscribeMax), ""})
}

// computeClass is the policy for a request and the resource it counts for.
func computeClass(r Request) (policy, key string) {
	if r.Polled != nil {
		return "GetOperation", r.Polled.ID
	}
	key = r.ID.Key()
	switch strings.ToLower(strings.TrimPrefix(strings.ToLower(r.Type), "microsoft.compute/")) {
	case "virtualmachines":
		return vmClass(r), key
	case "virtualmachines/extensions":
		return getOr(r, "LowCostGetVM", "LowCostGetVM", "UpdateVM"), r.ID.Parent().Key()
	case "virtualmachinescalesets":
		return scaleSetClass(r), key
	case "virtualmachinescalesets/virtualmachines":
		if r.List {
			return "HighCostGetVMScaleSet", key
		}
		if r.Method == http.MethodDelete || strings.EqualFold(r.Action, "deallocate") {
			return "DeleteVMScaleSetVM", key
		}
		return getOr(r, "GetVMScaleSetVM", "", "UpdateVMScaleSetVM"), key
	}
	if r.Method == http.MethodDelete {
		return "DeleteDisks", key
	}
	return getOr(r, "LowCostGet", "HighCostGet", "CreateUpdateDisks"), key
}

func getOr(r Request, get, list, write string) string {
	switch {
	case class(r.Method) != "reads":
		return write
	case r.List:
		return list
	}
	return get
}

func vmClass(r Request) string {
	switch {
	case r.Method == http.MethodDelete, strings.EqualFold(r.Action, "deallocate"):
		return "DeleteVM"
	case r.Method == http.MethodPut:
		return "PutVM"
	case strings.EqualFold(r.Action, "attachDetachDataDisks"):
		return "AttachDetachVMDisks"
	}
	return getOr(r, "LowCostGetVM", "HighCostGetVM", "UpdateVM")
}

func scaleSetClass(r Request) string {
	switch {
	case r.Method == http.MethodDelete, strings.EqualFold(r.Action, "deallocate"), strings.EqualFold(r.Action, "delete"):
		return "DeleteVMScaleSet"
	case r.Method == http.MethodPut:
		return "PutVMScaleSet"
	case strings.EqualFold(r.Action, "instanceView"):
		return "HighCostGetVMScaleSet"
	}
	return getOr(r, "LowCostGetVMScaleSet", "HighCostGetVMScaleSet", "UpdateVMScaleSet")
}

func computeThrottled(l limit, wait time.Duration) error {
	group := strings.TrimPrefix(l.name, "Microsoft.Compute/")
	err := behaviour.Refusal(http.StatusTooManyRequests, "OperationNotAllowed",
		"The server rejected the request because too many requests have been received for this subscription.")
	err.Details = []*behaviour.Error{{
		Code: "TooManyRequests", Target: group,
		Message: `{"operationGroup":"` + group + `","allowedRequestCount":` + strconv.Itoa(int(l.capacity)) + `,"measuredRequestCount":` +
			strconv.Itoa(int(l.capacity)+1) + `}`,
	}}
	err.Bare = true
	err.RetryAfter = wholeSeconds(wait)
	return err
}
