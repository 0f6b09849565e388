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

// deleting is the provisioning state of what is as good as gone.
const deleting = "Deleting"

// PowerState reads the power from an instance view, which may be nil.
func PowerState(view *compute.InstanceView) Power {
	if code := status(view, "PowerState/"); code != "" {
		return Power(strings.ToLower(code))
	}
	return Unknown
}

// provisioning is the provisioning state that an instance view tells; of a failure
// it names the cause, too.
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

// Shutdown reports whether a machine is off for good: its power is gone and Azure is
// done with it. A machine that is being changed may come back any moment.
func Shutdown(provisioningState string, power Power) bool {
	if !strings.EqualFold(provisioningState, "Succeeded") {
		return false
	}
	return power == Stopped || power == Deallocating || power == Deallocated
}
