package csi

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kaz/internal/azure"
)

// codeOf has the gRPC code for each kind of Azure's errors. It decides for both drivers: they add no codes of their own for
// errors of Azure, so that a lock or a throttled request has one code everywhere. Provisioners try the codes Aborted, Unavailable and
// DeadlineExceeded again and keep the volume in mind; with ResourceExhausted they choose another zone.
var codeOf = map[azure.Kind]codes.Code{
	azure.NotFound: codes.NotFound, azure.Exists: codes.AlreadyExists, azure.Changed: codes.Aborted, azure.Invalid: codes.InvalidArgument,
	azure.Denied: codes.PermissionDenied, azure.Throttled: codes.Unavailable, azure.Quota: codes.ResourceExhausted,
	azure.Capacity: codes.ResourceExhausted, azure.InUse: codes.FailedPrecondition, azure.Busy: codes.Aborted,
	azure.Unavailable: codes.Unavailable, azure.Canceled: codes.Canceled,
}

// Status returns err as a gRPC status with the operation that failed.
func Status(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	code, known := codeOf[azure.KindOf(err)]
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case !known:
		code = codes.Internal
	}
	return status.Errorf(code, "%s: %v", fmt.Sprintf(format, args...), err)
}

// Invalid is an error with the code InvalidArgument.
func Invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// Missing returns an error for the first empty field of a request, which are given as name and value in turns.
func Missing(request string, fields ...string) error {
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] == "" {
			return Invalid("%s: %s is missing", request, fields[i])
		}
	}
	return nil
}
