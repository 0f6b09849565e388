package resources_test

import (
	"fmt"
	"testing"

	"kaz/internal/localazure/behaviour/behaviourtest"
)

const (
	history  = "~/providers/Microsoft.Resources/deployments"
	keepLock = "~/providers/Microsoft.Authorization/locks/keep"
)

var nothing = of(`{"resources":[]}`, "")

// fill makes deployments d-1 to d-last.
func fill(a *behaviourtest.Azure, last int) {
	a.Helper()
	for i := 1; i <= last; i++ {
		if code, _, reply := a.Send("PUT", fmt.Sprintf("%s/d-%d", history, i), nothing); code != 201 {
			a.Fatalf("deployment %d: %d %v", i, code, reply)
		}
	}
}

// TestHistory checks that a deployment, a validation or a what-if with more than 700 deployments in the history deletes the oldest ones,
// until 600 are left. A deployment with a used name becomes the newest.
func TestHistory(t *testing.T) {
	for _, do := range []exchange{
		{Do: "PUT " + history + "/d-702", Body: nothing, Status: 201},
		{Do: "POST " + history + "/new/validate", Body: nothing},
		{Do: "POST " + history + "/new/whatIf", Body: nothing, Status: 202},
	} {
		t.Run(do.Do, func(t *testing.T) {
			a := start(t)
			fill(a, 701)
			a.Run(
				exchange{Do: "GET " + history + "/d-1"},
				exchange{Do: "PUT " + keepLock, Body: `{"properties":{"level":"CanNotDelete"}}`, Status: 201},
				exchange{Do: "PUT " + history + "/d-1", Body: nothing},
				exchange{Do: "GET " + history + "/d-2"}, // the lock keeps it
				exchange{Do: "DELETE " + keepLock},
				do,
				exchange{Do: "GET " + history + "/d-1"},
				exchange{Do: "GET " + history + "/d-102", Status: 404, Code: "DeploymentNotFound"},
				exchange{Do: "GET " + history + "/d-103"},
				exchange{Do: "GET " + history + "/d-701"},
			)
		})
	}
}

// TestFullHistory checks that a history with 800 deployments, which a lock keeps, takes no further one.
func TestFullHistory(t *testing.T) {
	a := start(t)
	a.Run(exchange{Do: "PUT " + keepLock, Body: `{"properties":{"level":"CanNotDelete"}}`, Status: 201})
	fill(a, 800)
	a.Run(
		exchange{Do: "PUT " + history + "/new", Body: nothing, Status: 409, Code: "DeploymentQuotaExceeded"},
		exchange{Do: "PUT " + history + "/d-1", Body: nothing},
		exchange{Do: "DELETE " + keepLock},
		exchange{Do: "PUT " + history + "/new", Body: nothing, Status: 201},
		exchange{Do: "GET " + history + "/d-2", Status: 404, Code: "DeploymentNotFound"},
		exchange{Do: "DELETE " + history + "/new", Status: 202},
		exchange{Do: "DELETE " + history + "/new", Status: 204},
	)
}
