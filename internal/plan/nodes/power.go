package nodes

import (
	"strings"

	"kaz/internal/azure/compute"
)

// Power is whether a machine is on.
type Power string

// The powers that Azure tells of, and Unknown for what it does not.
const (
	Running      Power = "running"
	Starting     Power = "starting"
	Stopping     Power = "stopping"
	Stopped      Power = "stopped"
	Deallocating Power = "deallocating"
	Deallocated  Power = "deallocated"
	Unknown      Power = "unknown"
)

// PowerState reads the power from an instance view, which may be nil.
func PowerState(view *compute.InstanceView) Power {
	const prefix = "PowerState/"
	if view == nil {
		return Unknown
	}
	for _, s := range view.Statuses {
		if len(s.Code) > len(prefix) && strings.EqualFold(s.Code[:len(prefix)], prefix) {
			return Power(strings.ToLower(s.Code[len(prefix):]))
		}
	}
	return Unknown
}

// Shutdown reports whether a machine is off for good: its power is gone and Azure is
// done with it. A machine that is being changed may come back any moment.
func Shutdown(provisioningState string, power Power) bool {
	if !strings.EqualFold(provisioningState, "Succeeded") {
		return false
	}
	return power == Stopped || power == Deallocating || power == Deallocated
}
