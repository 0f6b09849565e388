package vm

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

// Power states of a machine, as in the codes of its instance view.
const (
	Running      = "running"
	Starting     = "starting"
	Stopping     = "stopping"
	Stopped      = "stopped"
	Deallocating = "deallocating"
	Deallocated  = "deallocated"
)

// PowerOf returns the power state from the stored document of a virtual machine or an instance. It is "" for other
// documents and during the creation of the machine.
func PowerOf(doc behaviour.Object) string {
	if schema.State(doc) == schema.Creating {
		return ""
	}
	return behaviour.Text(doc, schema.Runtime+".power")
}

// PowerSince returns a value that changes with every change of the power state and with every restart.
func PowerSince(doc behaviour.Object) string { return behaviour.Text(doc, schema.Runtime+".since") }

// Abrupt reports whether the machine lost its power without a shutdown, as after a power-off with skipShutdown.
func Abrupt(doc behaviour.Object) bool { return behaviour.Bool(doc, schema.Runtime+".abrupt") }

// Begin writes the power state during the action.
func (t Transition) Begin(c *behaviour.Call, doc behaviour.Object) {
	if t.during == "" {
		return
	}
	abrupt := t.after == Stopped && strings.EqualFold(c.Query.Get("skipshutdown"), "true")
	if abrupt != Abrupt(doc) {
		behaviour.Set(doc, schema.Runtime+".abrupt", abrupt)
	}
	SetPower(c.World, doc, t.during)
}

// End writes the power state after the action.
func (t Transition) End(c *behaviour.Call, doc behaviour.Object) {
	if t.after != "" {
		SetPower(c.World, doc, t.after)
	}
}

// SetPower writes the power state and the time of its change.
func SetPower(w behaviour.World, doc behaviour.Object, power string) {
	if behaviour.Text(doc, schema.Runtime+".power") != power {
		behaviour.Set(doc, schema.Runtime+".power", power)
		behaviour.Set(doc, schema.Runtime+".since", behaviour.Stamp(w.Now()))
	}
	reserve(w, doc, power == Deallocated)
}

// reserve sets the state of a machine's disks: Reserved for a deallocated machine, else Attached.
func reserve(w behaviour.World, doc behaviour.Object, reserved bool) {
	want := "Attached"
	if reserved {
		want = "Reserved"
	}
	for _, id := range disksOf(doc) {
		if disk, ok := w.Get(id); ok && behaviour.Text(disk, "properties.diskState") != want {
			w.Edit(id, func(disk behaviour.Object) { behaviour.Set(disk, "properties.diskState", want) })
		}
	}
}

// disksOf returns the ids of the managed disks of a machine, the OS disk first.
func disksOf(doc behaviour.Object) []azure.ID {
	var ids []azure.ID
	if id := behaviour.RefID(doc, "properties.storageProfile.osDisk.managedDisk"); id != "" {
		ids = append(ids, id)
	}
	for _, disk := range behaviour.Objects(doc, "properties.storageProfile.dataDisks") {
		if id := behaviour.RefID(disk, "managedDisk"); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// Transition is the power state of a machine during and after an action.
type Transition struct{ during, after string }

// Transitions returns the actions that change only the power state.
func Transitions() map[string]Transition {
	return map[string]Transition{
		"start":      {Starting, Running},
		"restart":    {Starting, Running},
		"powerOff":   {Stopping, Stopped},
		"deallocate": {Deallocating, Deallocated},
		"redeploy":   {Starting, Running},
		"reapply":    {"", ""},
	}
}

// refusal returns an error if the transition of a machine is not possible now.
func (t Transition) refusal(doc behaviour.Object) error {
	if err := CheckStays(doc); err != nil {
		return err
	}
	if t.after == Running && behaviour.Bool(doc, schema.Runtime+".generalized") {
		return behaviour.Conflict("OperationNotAllowed",
			"The Virtual Machine '%s' is generalized: it cannot be started, only images can be made from it.", nameOf(doc))
	}
	return nil
}

// CheckStays returns an error if a machine is being deleted.
func CheckStays(doc behaviour.Object) error {
	if schema.State(doc) != schema.Deleting {
		return nil
	}
	return behaviour.Conflict("OperationNotAllowed",
		"Operation is not allowed on VM '%s' since it is marked for deletion. You can only retry the Delete operation (or wait "+
			"for an ongoing one to complete).", nameOf(doc))
}

// FailedMachine restores the power state of a machine after a failed operation.
func FailedMachine(c *behaviour.Call) {
	if c.Verb == behaviour.Create {
		behaviour.Set(c.Doc, schema.Runtime+".power", "")
		return
	}
	FailedPower(c.Doc)
}

// FailedPower reverts an unfinished change of the power state.
func FailedPower(doc behaviour.Object) {
	switch behaviour.Text(doc, schema.Runtime+".power") {
	case Starting:
		behaviour.Set(doc, schema.Runtime+".power", Stopped)
	case Stopping, Deallocating:
		behaviour.Set(doc, schema.Runtime+".power", Running)
	}
}

// nameOf returns the name of a machine in messages. The name of an instance has its scale set's name before the number.
func nameOf(doc behaviour.Object) string {
	id := azure.ID(behaviour.Text(doc, "id"))
	if id.Is(schema.InstanceType) {
		return id.Parent().Name() + "_" + id.Name()
	}
	return id.Name()
}

// PowerAction returns the action that changes the power state of one machine.
func PowerAction(t Transition) behaviour.Action {
	return behaviour.Action{
		Long: true,
		Do: func(c *behaviour.Call) (any, error) {
			if err := t.refusal(c.Old); err != nil {
				return nil, err
			}
			t.Begin(c, c.Doc)
			return nil, nil
		},
		Settle: func(c *behaviour.Call) (any, error) {
			t.End(c, c.Doc)
			return nil, nil
		},
	}
}

func RefuseLeaving(c *behaviour.Call) (any, error) { return nil, CheckStays(c.Old) }

// Evict deallocates or deletes a spot machine, as its eviction policy says.
func Evict(c *behaviour.Call) error {
	if !strings.EqualFold(behaviour.Text(c.Old, "properties.priority"), "Spot") {
		return behaviour.Conflict("OperationNotAllowed",
			"The operation 'simulateEviction' is only allowed on Spot virtual machines; '%s' is not one.", c.ID.Name())
	}
	if strings.EqualFold(behaviour.Text(c.Old, "properties.evictionPolicy"), "Delete") {
		c.Delete(c.ID)
		return nil
	}
	SetPower(c.World, c.Doc, Deallocated)
	return nil
}
