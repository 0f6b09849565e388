package vm

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/compute/schema"
)

// Script is a command that an extension runs on a machine.
type Script struct{ Extension, Command string }

// Result is what came of a script.
type Result struct {
	Status         int
	Stdout, Stderr string
}

const resultsField = schema.Runtime + ".scripts"

// isScript reports whether an extension runs a command.
func isScript(extension behaviour.Object) bool {
	return strings.EqualFold(behaviour.Text(extension, "properties.publisher"), "Microsoft.Azure.Extensions") &&
		strings.EqualFold(behaviour.Text(extension, "properties.type"), "CustomScript")
}

// extensionsOf returns the extensions of a machine: its children, or those that an instance has from its scale set.
func extensionsOf(w behaviour.World, machine azure.ID, doc behaviour.Object) []behaviour.Object {
	all := slices.Collect(maps.Values(maps.Collect(w.List(machine, MachineExtensionType))))
	return append(all, behaviour.Objects(doc, "resources")...)
}

// Scripts returns the scripts that a machine must run now: its software is ready, and they have no result yet.
func Scripts(w behaviour.World, machine azure.ID, doc behaviour.Object) []Script {
	if g, _ := GuestOf(doc); g.State != GuestReady || PowerOf(doc) != Running {
		return nil
	}
	var all []Script
	for _, e := range extensionsOf(w, machine, doc) {
		name := behaviour.Text(e, "name")
		if isScript(e) && resultOf(doc, name) == nil {
			command := behaviour.Text(e, schema.Runtime+".commandToExecute")
			if command == "" {
				command = behaviour.Text(e, "properties.settings.commandToExecute")
			}
			all = append(all, Script{name, command})
		}
	}
	return all
}

func resultOf(machine behaviour.Object, extension string) behaviour.Object {
	return behaviour.Sub(behaviour.Sub(machine, resultsField), strings.ToLower(extension))
}

// SetResult records what came of a script in the document of its machine.
func SetResult(machine behaviour.Object, extension string, r Result) {
	results := behaviour.Sub(machine, resultsField)
	if results == nil {
		results = behaviour.Object{}
	}
	results[strings.ToLower(extension)] = behaviour.Object{"status": r.Status, "stdout": r.Stdout, "stderr": r.Stderr}
	behaviour.Set(machine, resultsField, results)
}

// forgetResult makes a machine run a script again.
func forgetResult(w behaviour.World, machine azure.ID, extension string) {
	w.Edit(machine, func(doc behaviour.Object) {
		if results := behaviour.Sub(doc, resultsField); results != nil {
			delete(results, strings.ToLower(extension))
		}
	})
}

// AwaitScripts returns the error of [behaviour.Later] until all extensions of a machine that boots have run, and the failure of
// one that failed.
func AwaitScripts(w behaviour.World, machine azure.ID, doc behaviour.Object) error {
	var waiting error
	for _, e := range extensionsOf(w, machine, doc) {
		err := awaitScript(doc, e)
		if err != nil && !behaviour.GoesOn(err) {
			return err
		}
		if err != nil {
			waiting = err
		}
	}
	return waiting
}

func awaitScript(machine, extension behaviour.Object) error {
	g, boots := GuestOf(machine)
	result := resultOf(machine, behaviour.Text(extension, "name"))
	switch status, _ := behaviour.Int(result, "status"); {
	case !boots || !isScript(extension):
		return nil
	case g.State == GuestFailed:
		return behaviour.Conflict("OSProvisioningClientError", "OS Provisioning failed for VM '%s': %s", nameOf(machine), g.Message)
	case result == nil:
		return behaviour.Later()
	case status != 0:
		return behaviour.Conflict("VMExtensionProvisioningError",
			"VM '%s' has reported a failure when processing extension '%s' (publisher 'Microsoft.Azure.Extensions' and type "+
				"'CustomScript'). Error message: '%s'. More information on troubleshooting is available at "+
				"https://aka.ms/VMExtensionCSELinuxTroubleshoot.",
			nameOf(machine), behaviour.Text(extension, "name"), scriptMessage(result))
	}
	return nil
}

// scriptMessage returns what the extension says about a script that has run.
func scriptMessage(result behaviour.Object) string {
	status, _ := behaviour.Int(result, "status")
	outcome := "Enable succeeded: "
	if status != 0 {
		outcome = fmt.Sprintf("Enable failed: failed to execute command: command terminated with exit status=%d", status)
	}
	return fmt.Sprintf("%s\n[stdout]\n%s\n[stderr]\n%s", outcome, behaviour.Text(result, "stdout"), behaviour.Text(result, "stderr"))
}

// BeginGuest says that the software of a new machine is going to boot, if it is.
func BeginGuest(w behaviour.World, doc behaviour.Object) {
	if _, runs := GuestOf(doc); !runs && w.Boots() && CustomData(doc) != "" {
		SetGuest(doc, Guest{State: GuestBooting}, w.Now())
	}
}
