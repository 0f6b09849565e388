package csi_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
	"kaz/internal/csi"
)

// TestStatus has the answers of Azure that users meet, with the code that both drivers give them.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		what   string
		status int
		code   string
		want   codes.Code
	}{
		{"a lock CanNotDelete", 409, "ScopeLocked", codes.PermissionDenied},
		{"a missing role", 403, "AuthorizationFailed", codes.PermissionDenied},
		{"a policy", 403, "RequestDisallowedByPolicy", codes.PermissionDenied},
		{"too many requests", 429, "TooManyRequests", codes.Unavailable},
		{"too many requests to a provider", 429, "OperationNotAllowed", codes.Unavailable},
		{"too many requests of a subscription", 429, "SubscriptionRequestsThrottled", codes.Unavailable},
		{"an outage", 503, "ServiceUnavailable", codes.Unavailable},
		{"another operation", 409, "AnotherOperationInProgress", codes.Aborted},
		{"a changed resource", 412, "PreconditionFailed", codes.Aborted},
		{"a quota", 409, "QuotaExceeded", codes.ResourceExhausted},
		{"a full zone", 409, "ZonalAllocationFailed", codes.ResourceExhausted},
		{"a missing resource", 404, "ResourceNotFound", codes.NotFound},
		{"a wrong value", 400, "InvalidParameter", codes.InvalidArgument},
		{"something in use", 409, "CannotDeleteResource", codes.FailedPrecondition},
	} {
		err := &azure.Error{Kind: azure.Classify(c.status, c.code), Status: c.status, Code: c.code}
		if got := status.Code(csi.Status(err, "delete")); got != c.want {
			t.Errorf("%s: %d %s has the code %s, want %s", c.what, c.status, c.code, got, c.want)
		}
	}
	if got := status.Code(csi.Status(context.DeadlineExceeded, "delete")); got != codes.DeadlineExceeded {
		t.Errorf("a request that took too long has the code %s", got)
	}
	if csi.Status(nil, "delete") != nil {
		t.Error("success has a status")
	}
}
