package failure_test

import (
	"strings"
	"testing"

	"kaz/internal/cluster/failure"
)

func TestRemedies(t *testing.T) {
	for _, test := range []struct{ code, message, want string }{
		{"ZonalAllocationFailed", "", "other zones"},
		{"SkuNotAvailable", "", "another vmSize"},
		{"QuotaExceeded", "", "a higher quota"},
		{"CoreQuotaExceeded", "", "a higher quota"},
		{"OperationNotAllowed", "Operation results in exceeding approved Total Regional Cores quota.", "a higher quota"},
		{"SubnetIsFull", "", "a larger one"},
		{"LinkedAuthorizationFailed", "", "ask an owner"},
		{"RequestDisallowedByPolicy", "", "TemplatePatch"},
		{"VMExtensionProvisioningError", "", "boot log"},
	} {
		if got := failure.Remedy(test.code, test.message); !strings.Contains(got, test.want) {
			t.Errorf("%s %s: %q, want %q", test.code, test.message, got, test.want)
		}
	}
	if got := failure.Remedy("OperationNotAllowed", "The disk is attached to another machine."); got != "" {
		t.Errorf("a refusal that has nothing to do with quotas: %q", got)
	}
}
