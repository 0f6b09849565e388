package world

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"kaz/internal/localazure/behaviour"
)

// Recovered logs a panic and returns the refusal that a client gets for it.
func Recovered(log *slog.Logger, where string, p any) *behaviour.Error {
	log.Error("panic in the local Azure", "where", where, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return internalError()
}

// RefusalOf is the refusal that a client gets for an error.
func RefusalOf(log *slog.Logger, err error) *behaviour.Error {
	if refusal, ok := errors.AsType[*behaviour.Error](err); ok {
		return refusal
	}
	log.Error("error in the local Azure", "error", err)
	return internalError()
}

func internalError() *behaviour.Error {
	return behaviour.Refusal(500, "InternalServerError", "The server encountered an internal error. Please retry the request.")
}

// guarded runs a behaviour at a time when there is no request to answer.
func guarded(log *slog.Logger, f func() error) (refusal *behaviour.Error) {
	defer func() {
		if p := recover(); p != nil {
			refusal = Recovered(log, "operation", p)
		}
	}()
	if err := f(); err != nil {
		return RefusalOf(log, err)
	}
	return nil
}
