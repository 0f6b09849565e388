package arm

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kaz/internal/azure"
)

// Every form of error body that Azure is known to send, and what becomes of it.
func TestFaults(t *testing.T) {
	pip := string(group.Resource("Microsoft.Network/publicIPAddresses", "p"))
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   azure.Error
	}{
		{"wrapped", 404, `{"error":{"code":"ResourceNotFound","message":"The Resource was not found."}}`,
			azure.Error{Kind: azure.NotFound, Code: "ResourceNotFound", Message: "The Resource was not found."}},
		{"bare", 412, `{"code":"PreconditionFailed","message":"The Record set X has been modified (etag mismatch)."}`,
			azure.Error{Kind: azure.Changed, Code: "PreconditionFailed", Message: "The Record set X has been modified (etag mismatch)."}},
		{"details", 429,
			`{"error":{"code":"RetryableError","message":"A retryable error occurred.","details":[{"code":"ReferencedResourceNotProvisioned","message":"Cannot proceed with operation because resource ` + pip + ` used by resource ` + string(lb(
				"l")) + ` is not in Succeeded state."}]}}`,
			azure.Error{Kind: azure.Busy, Code: "ReferencedResourceNotProvisioned", Target: pip,
				Message: "A retryable error occurred.; Cannot proceed with operation because resource " + pip + " used by resource " +
					string(lb("l")) + " is not in Succeeded state."}},
		{"busy", 429,
			`{"error":{"code":"AnotherOperationInProgress","message":"Another operation on this or dependent resource is in progress.","details":[]}}`,
			azure.Error{Kind: azure.Busy, Code: "AnotherOperationInProgress",
				Message: "Another operation on this or dependent resource is in progress."}},
		{"compute throttles", 429,
			`{"code":"OperationNotAllowed","message":"The server rejected the request.","details":[{"code":"TooManyRequests","target":"HighCostGet30Min","message":"{\"operationGroup\":\"HighCostGet30Min\"}"}]}`,
			azure.Error{Kind: azure.Throttled, Code: "TooManyRequests", Target: "HighCostGet30Min",
				Message: `The server rejected the request.; {"operationGroup":"HighCostGet30Min"}`}},
		{"target", 400, `{"error":{"code":"InvalidParameter","message":"instanceId must be a number.","target":"instanceId"}}`,
			azure.Error{Kind: azure.Invalid, Code: "InvalidParameter", Message: "instanceId must be a number.", Target: "instanceId"}},
		{"no instance any more", 400, `{"error":{"code":"InvalidParameter","message":"The provided instanceId 857 is not an active ` +
			`Virtual Machine Scale Set VM instanceId.","target":"instanceIds"}}`,
			azure.Error{Kind: azure.NotFound, Code: "InvalidParameter", Target: "instanceIds",
				Message: "The provided instanceId 857 is not an active Virtual Machine Scale Set VM instanceId."}},
		{"no instance any more, by a code", 400, `{"error":{"code":"InstanceIdsListInstanceIdNotActiveVM","message":"m"}}`,
			azure.Error{Kind: azure.NotFound, Code: "InstanceIdsListInstanceIdNotActiveVM", Message: "m"}},
		{"in use by another", 400, `{"error":{"code":"PublicIPAddressCannotBeDeleted","message":"Public IP address ` + string(lb("l")) +
			` can not be deleted since it is still allocated to resource ` + pip + `."}}`,
			azure.Error{Kind: azure.InUse, Code: "PublicIPAddressCannotBeDeleted", Target: pip,
				Message: "Public IP address " + string(lb("l")) + " can not be deleted since it is still allocated to resource " +
					pip + "."}},
		{"quota without a code", 409,
			`{"error":{"code":"OperationNotAllowed","message":"Operation could not be completed as it results in exceeding approved Cores quota."}}`,
			azure.Error{Kind: azure.Quota, Code: "OperationNotAllowed",
				Message: "Operation could not be completed as it results in exceeding approved Cores quota."}},
		{"inner error", 400, `{"error":{"code":"BadRequest","message":"m","innererror":{"code":"QuotaExceeded"}}}`,
			azure.Error{Kind: azure.Quota, Code: "QuotaExceeded", Message: "m"}},
		{"odata", 400, `{"odata.error":{"code":"InvalidTemplate","message":{"lang":"en","value":"v"}}}`,
			azure.Error{Kind: azure.Invalid, Code: "InvalidTemplate", Message: "v"}},
		{"capitals", 409, `{"Error":{"Code":"Conflict","Message":"m"}}`, azure.Error{Kind: azure.Busy, Code: "Conflict", Message: "m"}},
		{"unknown code", 409, `{"error":{"code":"SomethingNew","message":"m"}}`,
			azure.Error{Kind: azure.Busy, Code: "SomethingNew", Message: "m"}},
		{"empty", 503, "", azure.Error{Kind: azure.Unavailable, Message: "HTTP 503 Service Unavailable without an explanation"}},
		{"html", 502, "<html><body>password=x</body></html>",
			azure.Error{Kind: azure.Unavailable, Message: "HTTP 502 Bad Gateway without an explanation"}},
		{"null", 500, "null", azure.Error{Kind: azure.Unavailable, Message: "HTTP 500 Internal Server Error without an explanation"}},
		{"numbers", 400, `{"error":{"code":7,"message":[],"details":{"code":3}}}`,
			azure.Error{Kind: azure.Invalid, Message: "HTTP 400 Bad Request without an explanation"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.Op, c.want.ID, c.want.Status = "PUT", lb("l"), c.status
			got := parseFault([]byte(c.body)).failed(call{op: "PUT", id: lb("l")}, c.status)
			if diff := cmp.Diff(&c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzFault(f *testing.F) {
	for _, seed := range []string{"", "null", `{"error":{"code":"c","message":"m","details":[{"code":"d"}]}}`,
		`{"code":"x","target":"/subscriptions/s"}`, `[[[{"error":[]}]]]`} {
		f.Add([]byte(seed), 400)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		e := parseFault(body).failed(call{op: "PUT", id: lb("l")}, status)
		if e.Kind == azure.Canceled || len(e.Message) > 2100 {
			t.Errorf("%+v", e)
		}
		if strings.Contains(e.Target, "\n") && !strings.Contains(string(body), `\n`) {
			t.Errorf("target %q", e.Target)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{header(), 0},
		{header("Retry-After", "7"), 7 * time.Second},
		{header("Retry-After", " 7 "), 7 * time.Second},
		{header("Retry-After", "0"), 0},
		{header("Retry-After", "-1"), 0},
		{header("Retry-After", "soon"), 0},
		{header("Retry-After", "99999999999999"), longestWait},
		{header("Retry-After", "Fri, 02 Jan 2026 03:04:35 GMT"), 30 * time.Second},
		{header("Retry-After", "Fri, 02 Jan 2026 03:04:00 GMT"), 0},
		{header("Retry-After", "Fri, 02 Jan 2099 03:04:00 GMT"), longestWait},
		{header("Retry-After", "9", "x-ms-retry-after-ms", "100"), 100 * time.Millisecond},
		{header("Retry-After", "9", "Retry-After-Ms", "200", "x-ms-retry-after-ms", "100"), 200 * time.Millisecond},
	} {
		h := http.Header{}
		for k, v := range c.header {
			h.Set(k, v)
		}
		if got := retryAfter(h, now); got != c.want {
			t.Errorf("%v: %v, want %v", c.header, got, c.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("7", "")
	f.Add("Fri, 02 Jan 2026 03:04:35 GMT", "1")
	f.Fuzz(func(t *testing.T, value, ms string) {
		h := http.Header{"Retry-After": {value}, "X-Ms-Retry-After-Ms": {ms}}
		if d := retryAfter(h, time.Unix(1e9, 0)); d < 0 || d > longestWait {
			t.Errorf("%q, %q: %v", value, ms, d)
		}
	})
}

func TestTrusted(t *testing.T) {
	d := open(t, script(answer{}))
	for raw, trusted := range map[string]bool{
		endpoint + "/x":                    true,
		"https://MANAGEMENT.test/x":        true,
		"https://eastus.management.test/x": true,
		"/subscriptions/x":                 true,
		"https://management.test.evil/x":   false,
		"https://evilmanagement.test/x":    false,
		"https://management.test:443/x":    true,
		"https://Management.Test:443/x":    true,
		"https://e.management.test:443/x":  true,
		"https://management.test:/x":       true,
		"https://management.test:444/x":    false,
		"https://management.test:80/x":     false,
		"https://evil.test:443/x":          false,
		"https://management.test:443.evil": false,
		"http://management.test:443/x":     false,
		"https://management.test%3a443/x":  false,
		"https://management.test:443@evil": false,
		"http://management.test/x":         false,
		"https://u:p@management.test/x":    false,
		"//evil/x":                         false,
		"https://%zz/":                     false,
	} {
		if _, err := d.build.trusted(raw); (err == nil) != trusted {
			t.Errorf("%s: %v, want trusted %v", raw, err, trusted)
		}
	}
}
