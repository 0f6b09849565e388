package nodegroup

import (
	"cmp"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/plan/poolnode"
)

// State is the state of a machine as cluster-autoscaler knows it.
type State int32

// The states of the protocol.
const (
	Unknown State = iota
	Running
	Creating
	Deleting
)

// Instance is a machine of a scale set.
type Instance struct {
	ID      azure.ID
	Key     string // of the id
	Created string // RFC 3339
	State   State
	Failure *Failure // why it does not come, nil otherwise
	// Deallocated says that the machine is off and its cores are given back. Deallocated machines are no nodes.
	Deallocated bool
}

// Name is how actions of the scale set name the machine.
func (i Instance) Name() string { return i.ID.Name() }

// FailedState is the code of a machine's failure for which Azure gives no reason.
const FailedState = "provisioning-state-failed"

// Observed is what is known of machines beside what Azure lists.
type Observed struct {
	// Before is the state of a machine when it was listed before, Unknown for a new one.
	Before func(azure.ID) State
	// Registered reports whether the machine is, or was, a node.
	Registered func(azure.ID) bool
	// Reason returns why an operation failed to make the machine, if that is known.
	Reason func(azure.ID) (Failure, bool)
}

// ReadInstance returns a machine as a list with instance views shows it.
func ReadInstance(machine azure.Resource[compute.ScaledInstance], o Observed) Instance {
	p := machine.Properties
	i := Instance{ID: machine.ID, Key: machine.ID.Key(), Created: p.TimeCreated, State: Running}
	power := status(p.InstanceView, "PowerState/")
	i.Deallocated = slices.Contains([]string{"deallocated", "deallocating"}, power)
	switch strings.ToLower(p.ProvisioningState) {
	case "deleting":
		i.State = Deleting
	case "creating":
		i.State = Creating
	case "updating":
		i.State = cmp.Or(o.Before(i.ID), Running)
	case "failed":
		// A machine that runs may do its work in spite of a failed change.
		if power != "running" && power != "starting" && !o.Registered(i.ID) {
			f, known := o.Reason(i.ID)
			if !known {
				f = Failure{Code: FailedState, Class: OutOfResources,
					Message: cmp.Or(failureMessage(p.InstanceView), "Azure failed to make the machine "+string(i.ID))}
			}
			i.State, i.Failure = Creating, &f
		}
	}
	if i.State != Deleting && !o.Registered(i.ID) {
		if failed := failedBoot(p.InstanceView); failed != nil {
			i.State, i.Failure = Creating, failed
		}
	}
	return i
}

// status returns the rest of the status code with a prefix, in lower case.
func status(view *compute.InstanceHealth, prefix string) string {
	if view == nil {
		return ""
	}
	for _, s := range view.Statuses {
		if rest, ok := cutFold(s.Code, prefix); ok {
			return strings.ToLower(rest)
		}
	}
	return ""
}

func failureMessage(view *compute.InstanceHealth) string {
	if view == nil {
		return ""
	}
	for _, s := range view.Statuses {
		if strings.EqualFold(s.Level, "Error") {
			return cut(s.Message)
		}
	}
	return ""
}

// boots reports whether an extension makes a machine a node, by the names that distributions give it, or by its type: the extension that
// runs a script, and that of Cluster API. In an instance view the type has the publisher before it.
func boots(e compute.ExtensionHealth) bool {
	same := func(a string) func(string) bool { return func(b string) bool { return strings.EqualFold(a, b) } }
	return slices.ContainsFunc([]string{poolnode.BootExtension, "vmssCSE", "CAPZ.Linux.Bootstrapping", "CAPZ.Windows.Bootstrapping"},
		same(e.Name)) || slices.ContainsFunc([]string{
		"Microsoft.Azure.Extensions.CustomScript", "Microsoft.OSTCExtensions.CustomScriptForLinux",
		"Microsoft.Compute.CustomScriptExtension",
		"Microsoft.Azure.ContainerUpstream.CAPZ.Linux.Bootstrapping", "Microsoft.Azure.ContainerUpstream.CAPZ.Windows.Bootstrapping",
	}, same(e.Type))
}

// failedBoot returns the failure of the extension that makes a machine a node, nil if it did not fail.
func failedBoot(view *compute.InstanceHealth) *Failure {
	if view == nil {
		return nil
	}
	for _, extension := range view.Extensions {
		if !boots(extension) {
			continue
		}
		for _, s := range extension.Statuses {
			if strings.EqualFold(s.Level, "Error") {
				return &Failure{Code: "VMExtensionProvisioningFailed", Message: cut(s.Message), Class: Other}
			}
		}
	}
	return nil
}
