package nodegroup

import (
	"errors"
	"slices"
	"strings"

	"kaz/internal/azure"
)

// Class is what cluster-autoscaler makes of a failure.
type Class int32

// The classes of the protocol. After both, other groups are tried at once.
const (
	OutOfResources Class = 1
	Other          Class = 99
)

// Failure is why a machine does not come.
type Failure struct {
	Code, Message string
	Class         Class
}

// longestMessage is how much of Azure's message is passed on, in bytes.
const longestMessage = 1024

// FailureOf returns what an error of Azure means for machines that were asked for. It is nil for errors that may pass:
// the request is worth another try.
func FailureOf(err error) *Failure {
	kind := azure.KindOf(err)
	if passing(kind) {
		return nil
	}
	f := &Failure{Code: kind.String(), Message: err.Error(), Class: Other}
	var refused *azure.Error
	if errors.As(err, &refused) && refused.Code != "" {
		f.Code = refused.Code
		if refused.Message != "" {
			f.Message = refused.Message
		}
	}
	if kind == azure.Quota {
		f.Code = "QuotaExceeded"
	}
	if kind == azure.Quota || kind == azure.Capacity || slices.ContainsFunc(scarce(), func(code string) bool {
		return strings.EqualFold(code, f.Code)
	}) {
		f.Class = OutOfResources
	}
	f.Message = cut(f.Message)
	return f
}

// passing reports whether an error of the kind may pass. A lack of capacity may last for hours.
func passing(kind azure.Kind) bool {
	return slices.Contains([]azure.Kind{azure.Throttled, azure.Busy, azure.Unavailable, azure.Changed, azure.Canceled}, kind)
}

// scarce are the codes of failures for lack of resources that azure.KindOf does not tell from other failures.
func scarce() []string {
	return []string{
		"SpotEvicted", "SubnetWithInsufficientIPs", "CapacityReservationCapacityExceeded",
		"OverconstrainedCapacityReservation", "AllocationTimeout",
	}
}

func cut(message string) string {
	if len(message) <= longestMessage {
		return message
	}
	const dots = "..."
	return strings.ToValidUTF8(message[:longestMessage-len(dots)], "") + dots
}
