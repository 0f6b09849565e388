package vm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

// Script is what a machine runs: the command of an extension, or the script of a run command.
type Script struct {
	// Key names the script among the scripts of its machine.
	Key string
	// Text is a command of the shell, or the content of a script file if Dir is set.
	Text string
	// Dir is the directory inside the machine in which the script file is stored and runs, "" for a command.
	Dir string
	// URI is where the machine gets the script file from, "" if it is Text. Shell runs script files that do not name a program.
	URI, Shell string
	// Args and Env (NAME=VALUE) are the parameters of the script, User the user that it runs as, "" for root.
	Args, Env []string
	User      string
	// Timeout ends the script, 0 for none.
	Timeout time.Duration
}

// Result is what came of a script.
type Result struct {
	Status         int
	Stdout, Stderr string
	// TimedOut says that the script was ended by its timeout.
	TimedOut bool
}

const resultsField = schema.Runtime + ".scripts"

// isScript reports whether an extension runs a command.
func isScript(extension behaviour.Object) bool {
	return strings.EqualFold(behaviour.Text(extension, "properties.publisher"), "Microsoft.Azure.Extensions") &&
		strings.EqualFold(behaviour.Text(extension, "properties.type"), "CustomScript")
}

// extensionsOf returns the extensions of a machine: its children, or the extensions that an instance has from its scale set.
func extensionsOf(w behaviour.World, machine azure.ID, doc behaviour.Object) []behaviour.Object {
	all := slices.Collect(maps.Values(maps.Collect(w.List(machine, MachineExtensionType))))
	return append(all, behaviour.Objects(doc, "resources")...)
}

// Scripts returns the scripts that a machine must run now: its software is ready, and they have no result yet.
func Scripts(w behaviour.World, machine azure.ID, doc behaviour.Object) []Script {
	if g, _ := GuestOf(doc); g.State != GuestReady || PowerOf(doc) != Running {
		return nil
	}
	all := runCommandScripts(w, machine, doc)
	for _, e := range extensionsOf(w, machine, doc) {
		if !isScript(e) {
			continue
		}
		command := behaviour.Text(e, schema.Runtime+".commandToExecute")
		if command == "" {
			command = behaviour.Text(e, "properties.settings.commandToExecute")
		}
		all = append(all, Script{Key: extensionKey(behaviour.Text(e, "name")), Text: command})
	}
	return slices.DeleteFunc(all, func(s Script) bool { return ended(resultOf(doc, s.Key)) })
}

// extensionKey is the key of the script of an extension. Those of run commands have other letters.
func extensionKey(name string) string { return strings.ToLower(name) }

// ended reports whether a result is of a script that has ended.
func ended(result behaviour.Object) bool { return result["status"] != nil }

func resultOf(machine behaviour.Object, key string) behaviour.Object {
	result, _ := behaviour.Sub(machine, resultsField)[key].(behaviour.Object)
	return result
}

// SetStarted records in the document of a machine that a script began. It may begin again, if its machine ended before it did.
func SetStarted(machine behaviour.Object, key string, at time.Time) {
	setResult(machine, key, behaviour.Object{"started": behaviour.Stamp(at)})
}

// SetResult records what came of a script in the document of its machine.
func SetResult(machine behaviour.Object, key string, r Result, at time.Time) {
	result := behaviour.Object{"status": r.Status, "stdout": r.Stdout, "stderr": r.Stderr, "ended": behaviour.Stamp(at)}
	if r.TimedOut {
		result["timedOut"] = true
	}
	if started := resultOf(machine, key)["started"]; started != nil {
		result["started"] = started
	}
	setResult(machine, key, result)
}

func setResult(machine behaviour.Object, key string, result behaviour.Object) {
	results := behaviour.Sub(machine, resultsField)
	if results == nil {
		results = behaviour.Object{}
	}
	results[key] = result
	behaviour.Set(machine, resultsField, results)
}

// forgetResult makes a machine run a script again.
func forgetResult(w behaviour.World, machine azure.ID, key string) {
	w.Edit(machine, func(doc behaviour.Object) { delete(behaviour.Sub(doc, resultsField), key) })
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
	result := resultOf(machine, extensionKey(behaviour.Text(extension, "name")))
	switch status, _ := behaviour.Int(result, "status"); {
	case !boots || !isScript(extension):
		return nil
	case g.State == GuestFailed:
		return behaviour.Conflict("OSProvisioningClientError", "OS Provisioning failed for VM '%s': %s", nameOf(machine), g.Message)
	case !ended(result):
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
	return outputMessage(outcome, behaviour.Text(result, "stdout"), behaviour.Text(result, "stderr"))
}

func outputMessage(outcome, stdout, stderr string) string {
	return fmt.Sprintf("%s\n[stdout]\n%s\n[stderr]\n%s", outcome, stdout, stderr)
}

// BeginGuest says that the software of a new machine is going to boot, if it is.
func BeginGuest(w behaviour.World, doc behaviour.Object) {
	if _, runs := GuestOf(doc); !runs && w.Boots() && CustomData(doc) != "" {
		SetGuest(doc, Guest{State: GuestBooting}, w.Now())
	}
}
