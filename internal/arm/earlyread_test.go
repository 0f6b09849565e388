package arm

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
)

// If Azure wants the first poll soon and the next one much later, the client reads the resource in between.
func TestLateOperations(t *testing.T) {
	id := lb("l")
	state := func(s, etag string) answer {
		return answer{status: 200, body: `{"id":"` + string(id) + `","etag":"` + etag + `","properties":{"provisioningState":"` + s + `"}}`}
	}
	begun := answer{status: 200, header: header("Azure-AsyncOperation", operations, "Retry-After", "3"), body: resource(id, "Updating")}
	running := answer{status: 200, header: header("Retry-After", "10"), body: `{"status":"InProgress"}`}
	succeeded := answer{status: 200, body: `{"status":"Succeeded"}`}
	failed := answer{status: 200, body: `{"status":"Failed","error":{"code":"InternalServerError","message":"m"}}`}
	written := azure.Write{ID: id, Body: azure.Document(`{}`), IfMatch: "was", Unseen: true}
	for name, c := range map[string]struct {
		write   azure.Write
		answers []answer
		at      []time.Duration // in seconds
		fails   bool
	}{
		"in force at the first look": {written, []answer{begun, running, state("Succeeded", "is")}, []time.Duration{0, 3, 4}, false},
		"at the second": {written, []answer{begun, running, state("Updating", "is"), state("Succeeded", "is")},
			[]time.Duration{0, 3, 4, 6}, false},
		"in time": {written, []answer{begun, succeeded}, []time.Duration{0, 3}, false},
		"an old answer does not count": {written, []answer{begun, running, state("Succeeded", "was"), state("Succeeded", "is")},
			[]time.Duration{0, 3, 4, 6}, false},
		"only the poll says why": {written,
			[]answer{begun, running, state("Failed", "is"), state("Failed", "is"), state("Failed", "is"), failed},
			[]time.Duration{0, 3, 4, 6, 10, 13}, true},
		"it cannot be read": {written,
			[]answer{begun, running, {status: 403, body: fail("AuthorizationFailed")}, {status: 403, body: fail("AuthorizationFailed")},
				{status: 403, body: fail("AuthorizationFailed")}, succeeded}, []time.Duration{0, 3, 4, 6, 10, 13}, false},
		"nothing tells old answers from new ones": {azure.Write{ID: id, Body: azure.Document(`{}`), Unseen: true},
			[]answer{begun, running, succeeded}, []time.Duration{0, 3, 13}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := script(c.answers...)
				if _, err := open(t, s).Put(t.Context(), c.write); (err != nil) != c.fails {
					t.Errorf("error %v", err)
				}
				_, at := s.trace()
				for i := range at {
					at[i] = at[i].Round(time.Second) / time.Second
				}
				if !slices.Equal(at, c.at) {
					t.Errorf("requests at %d s, want %d", at, c.at)
				}
			})
		})
	}
}
