package nodes

import (
	"strings"

	"kaz/internal/azure/compute"
)

// Power is the power state of a machine.
type Power string

// The power states of Azure, and Unknown for others.
const (
	Running      Power = "running"
	Starting     Power = "starting"
	Stopping     Power = "stopping"
	Stopped      Power = "stopped"
	Deallocating Power = "deallocating"
	Deallocated  Power = "deallocated"
	Unknown      Power = "unknown"
)

// deleting is the provisioning state of a resource that is being deleted.
const deleting = "Deleting"

// PowerState returns the power state of an instance view, which may be nil.
func PowerState(view *compute.InstanceView) Power {
	if code := status(view, "PowerState/"); code != "" {
		return Power(strings.ToLower(code))
	}
	return Unknown
}

// provisioning returns the provisioning state of an instance view, with the cause of a failure.
func provisioning(view *compute.InstanceView) string {
	state, _, _ := strings.Cut(status(view, "ProvisioningState/"), "/")
	return state
}

func status(view *compute.InstanceView, prefix string) string {
	if view == nil {
		return ""
	}
	for _, s := range view.Statuses {
		if len(s.Code) > len(prefix) && strings.EqualFold(s.Code[:len(prefix)], prefix) {
			return s.Code[len(prefix):]
		}
	}
	return ""
}

// Shutdown reports whether a machine is off permanently: it is stopped or deallocated, and no
// operation is in progress that could start it.
func Shutdown(provisioningState string, power Power) bool {
	if !strings.EqualFold(provisioningState, "Succeeded") {
		return false
	}
	return power == Stopped || power == Deallocating || power == Deallocated
}
