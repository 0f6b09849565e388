package vm

import (
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

// Guest is the state of the software of a machine that runs. A machine that is only a document has none.
type Guest struct {
	// State is one of [GuestBooting], [GuestReady] and [GuestFailed].
	State string
	// Message says why it failed.
	Message string
}

// The states of a guest.
const (
	GuestBooting = "Booting"
	GuestReady   = "Ready"
	GuestFailed  = "NotReady"
)

const guestField = schema.Runtime + ".guest"

// GuestOf returns the state of the software of a stored machine, false for a machine that is only a document.
func GuestOf(doc behaviour.Object) (Guest, bool) {
	g := Guest{State: behaviour.Text(doc, guestField+".state"), Message: behaviour.Text(doc, guestField+".message")}
	return g, g.State != ""
}

// SetGuest writes the state of the software of a machine.
func SetGuest(doc behaviour.Object, g Guest, at time.Time) {
	if had, _ := GuestOf(doc); had == g {
		return
	}
	behaviour.Set(doc, guestField, behaviour.Object{"state": g.State, "message": g.Message, "since": behaviour.Stamp(at)})
}

// agentView returns what the guest agent reported, if it did.
func agentView(doc behaviour.Object, since string) behaviour.Object {
	status := behaviour.Object{
		"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Ready",
		"message": "GuestAgent is running and processing the extensions.", "time": since,
	}
	version := agentVersion
	if g, runs := GuestOf(doc); runs {
		status["time"] = behaviour.Text(doc, guestField+".since")
		if g.State != GuestReady {
			version = "Unknown"
			status["code"], status["level"], status["displayStatus"] = "ProvisioningState/Unavailable", "Warning", "Not Ready"
			status["message"] = "VM status blob is found but not yet populated."
		}
	}
	return behaviour.Object{"vmAgentVersion": version, "statuses": []any{status}, "extensionHandlers": []any{}}
}

// guestStatuses returns the statuses of a machine after its software failed to start.
func guestStatuses(doc behaviour.Object) []any {
	g, _ := GuestOf(doc)
	if g.State != GuestFailed {
		return nil
	}
	return []any{behaviour.Object{
		"code": "ProvisioningState/failed/OSProvisioningClientError", "level": "Error", "displayStatus": "OS Provisioning failed",
		"message": "OS Provisioning failed for VM '" + nameOf(doc) + "': " + g.Message, "time": behaviour.Text(doc, guestField+".since"),
	}}
}
