package compute

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
)

// Power states of a machine, as the codes of its instance view end.
const (
	Running      = "running"
	Starting     = "starting"
	Stopping     = "stopping"
	Stopped      = "stopped"
	Deallocating = "deallocating"
	Deallocated  = "deallocated"
)

// PowerOf is the power state of the stored document of a virtual machine or of an
// instance of a scale set; "" for other documents and for a machine that is not
// created yet.
func PowerOf(doc behaviour.Object) string {
	if state(doc) == creating {
		return ""
	}
	return behaviour.Text(doc, runtime+".power")
}

// PowerSince tells one time in a power state from another: it changes whenever the
// power state does, and with every restart.
func PowerSince(doc behaviour.Object) string { return behaviour.Text(doc, runtime+".since") }

// Abrupt reports whether the machine lost its power without being told to shut down,
// which is what a power-off with skipShutdown does.
func Abrupt(doc behaviour.Object) bool { return behaviour.Bool(doc, runtime+".abrupt") }

// begin notes how an action changes the power state, when it starts to.
func (t transition) begin(c *behaviour.Call, doc behaviour.Object) {
	if t.during == "" {
		return
	}
	abrupt := t.after == Stopped && strings.EqualFold(c.Query.Get("skipshutdown"), "true")
	if abrupt != Abrupt(doc) {
		behaviour.Set(doc, runtime+".abrupt", abrupt)
	}
	setPower(c.World, doc, t.during)
}

// end notes the power state that an action leads to.
func (t transition) end(c *behaviour.Call, doc behaviour.Object) {
	if t.after != "" {
		setPower(c.World, doc, t.after)
	}
}

// setPower notes the power state and since when it is so.
func setPower(w behaviour.World, doc behaviour.Object, power string) {
	if behaviour.Text(doc, runtime+".power") != power {
		behaviour.Set(doc, runtime+".power", power)
		behaviour.Set(doc, runtime+".since", behaviour.Stamp(w.Now()))
	}
	reserve(w, doc, power == Deallocated)
}

// reserve says on the disks of a machine whether they are in use or only reserved.
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

// disksOf are the ids of the managed disks of a machine, the OS disk first.
func disksOf(doc behaviour.Object) []azure.ID {
	var ids []azure.ID
	if id := behaviour.RefID(doc, "properties.storageProfile.osDisk.managedDisk"); id != "" {
		ids = append(ids, id)
	}
	each(doc, "properties.storageProfile.dataDisks", func(disk behaviour.Object) {
		if id := behaviour.RefID(disk, "managedDisk"); id != "" {
			ids = append(ids, id)
		}
	})
	return ids
}

// transition is what an action does to the power of a machine.
type transition struct{ during, after string }

// transitions are the actions that do nothing but change the power state.
func transitions() map[string]transition {
	return map[string]transition{
		"start":      {Starting, Running},
		"restart":    {Starting, Running},
		"powerOff":   {Stopping, Stopped},
		"deallocate": {Deallocating, Deallocated},
		"redeploy":   {Starting, Running},
		"reapply":    {"", ""},
	}
}

// refusal is why a machine cannot do a transition now.
func (t transition) refusal(doc behaviour.Object) error {
	if state(doc) == deleting {
		return behaviour.Conflict("OperationNotAllowed", "Operation is not allowed on VM '%s' since it is marked for deletion. You can only retry the Delete operation (or wait for an ongoing one to complete).", nameOf(doc))
	}
	if t.after == Running && behaviour.Bool(doc, runtime+".generalized") {
		return behaviour.Conflict("OperationNotAllowed", "The Virtual Machine '%s' is generalized: it cannot be started, only images can be made from it.", nameOf(doc))
	}
	return nil
}

// failedMachine leaves a machine as it was before an operation that failed.
func failedMachine(c *behaviour.Call) {
	if c.Verb == behaviour.Create {
		behaviour.Set(c.Doc, runtime+".power", "")
		return
	}
	failedPower(c.Doc)
}

// failedPower takes back a change of power that did not end.
func failedPower(doc behaviour.Object) {
	switch behaviour.Text(doc, runtime+".power") {
	case Starting:
		behaviour.Set(doc, runtime+".power", Stopped)
	case Stopping, Deallocating:
		behaviour.Set(doc, runtime+".power", Running)
	}
}

// nameOf is the name of a machine in messages: that of an instance has the name of
// its scale set before the number.
func nameOf(doc behaviour.Object) string {
	id := azure.ID(behaviour.Text(doc, "id"))
	if id.Is(instanceType) {
		return id.Parent().Name() + "_" + id.Name()
	}
	return id.Name()
}
