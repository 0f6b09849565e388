package verify_test

import (
	"testing"

	"kaz/internal/verify"
)

// TestLocalAzureAgrees runs all probes: the local Azure has the beliefs of kaz.
func TestLocalAzureAgrees(t *testing.T) {
	w := newTarget(t, straight)
	report := w.run(t)
	for _, r := range report.Results {
		if r.Verdict != verify.Agrees {
			t.Errorf("%s %s: %s\n%q", r.Verdict, r.Probe, r.Reason, r.Seen)
		}
	}
	if left := w.groups(t); len(left) > 0 || len(report.Left) > 0 {
		t.Errorf("left: %v, %v", left, report.Left)
	}
}
