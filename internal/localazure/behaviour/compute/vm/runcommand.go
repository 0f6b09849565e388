package vm

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

// The types of run commands that are resources.
const (
	MachineCommandType  = schema.MachineType + "/runCommands"
	InstanceCommandType = schema.InstanceType + "/runCommands"
)

// protectedField is the field of a run command's document with the parameters that clients never see.
const protectedField = schema.Runtime + ".protectedParameters"

// runCommands returns a type of run commands. A machine that boots runs their scripts, each change once.
func runCommands(name string) behaviour.Type {
	style := behaviour.Compute()
	style.Etag, style.EtagHeader = behaviour.NoEtag, behaviour.Never
	return behaviour.Type{
		Name:   name,
		Style:  style,
		Where:  behaviour.Located,
		Own:    []string{schema.Runtime, "properties.instanceView"},
		Fill:   fillRunCommand,
		Settle: settleRunCommand,
		Show:   showRunCommand,
		Removed: func(c *behaviour.Call) error {
			forgetResult(c.World, c.ID.Parent(), runCommandKey(c.ID.Name()))
			return nil
		},
	}
}

// runCommandKey is the key of the script of a run command.
func runCommandKey(name string) string { return "runCommands/" + strings.ToLower(name) }

// sources are the ways to give the script of a run command.
var sources = []string{"script", "scriptUri", "commandId"}

// deciding are the parts of a run command with which its script runs again when they change.
var deciding = []string{"properties.source", "properties.parameters", "properties.runAsUser", "properties.timeoutInSeconds", protectedField}

func fillRunCommand(c *behaviour.Call) error {
	schema.KeepRest(c)
	if sent := behaviour.At(c.Doc, "properties.protectedParameters"); sent != nil {
		behaviour.Set(c.Doc, protectedField, sent)
		behaviour.Remove(c.Doc, "properties.protectedParameters")
	}
	given := 0
	for _, source := range sources {
		if behaviour.Text(c.Doc, "properties.source."+source) != "" {
			given++
		}
	}
	if given != 1 {
		return behaviour.Invalid("InvalidParameter", "The run command '%s' has %d sources. One of script, scriptUri and commandId must "+
			"be given.", c.ID.Name(), given).At("source")
	}
	if seconds := schema.Number(c.Doc, "properties.timeoutInSeconds"); seconds < 0 {
		return behaviour.Invalid("InvalidParameter", "The value '%d' of parameter 'timeoutInSeconds' is invalid: it must not be negative.",
			seconds).At("timeoutInSeconds")
	}
	machine, _ := c.Get(c.ID.Parent())
	if _, boots := GuestOf(machine); boots {
		if err := checkRunnable(machine, c.Doc); err != nil {
			return err
		}
	}
	for _, path := range deciding {
		if c.Changed(path) || schema.State(c.Old) == schema.Failed {
			forgetResult(c.World, c.ID.Parent(), runCommandKey(c.ID.Name()))
			return nil
		}
	}
	return nil
}

// checkRunnable refuses what a machine that boots cannot do.
func checkRunnable(machine, doc behaviour.Object) error {
	if PowerOf(machine) != Running {
		return behaviour.Conflict("OperationNotAllowed", "Cannot modify extensions in the VM when the VM is not running.")
	}
	for _, field := range []string{"outputBlobUri", "errorBlobUri"} {
		if behaviour.Text(doc, "properties."+field) != "" {
			return behaviour.Invalid("InvalidParameter", "The parameter '%s' is not supported: the local Azure has no append blobs.",
				field).At(field)
		}
	}
	if id := behaviour.Text(doc, "properties.source.commandId"); id != "" && commands[strings.ToLower(id)] == "" {
		return unknownCommand(id)
	}
	return nil
}

// settleRunCommand waits for the script, unless the command is asynchronous.
func settleRunCommand(c *behaviour.Call) error {
	machine, _ := c.Get(c.ID.Parent())
	g, boots := GuestOf(machine)
	result := resultOf(machine, runCommandKey(c.ID.Name()))
	switch status, _ := behaviour.Int(result, "status"); {
	case !boots || behaviour.Bool(c.Doc, "properties.asyncExecution"):
		return nil
	case g.State == GuestFailed:
		return agentFails(machine)
	case !ended(result):
		return behaviour.Later()
	case status != 0 && behaviour.Bool(c.Doc, "properties.treatFailureAsDeploymentFailure"):
		return behaviour.Conflict("VMExtensionProvisioningError",
			"VM '%s' has reported a failure when processing run command '%s'. Error message: '%s'.",
			nameOf(machine), c.ID.Name(), scriptMessage(result))
	}
	return nil
}

func showRunCommand(c *behaviour.Call, view behaviour.Object) {
	delete(view, schema.Runtime)
	behaviour.Remove(view, "properties.instanceView")
	if !c.Expands("instanceView") {
		return
	}
	machine, _ := c.Get(c.ID.Parent())
	behaviour.Set(view, "properties.instanceView", runCommandView(machine, behaviour.Text(view, "name")))
}

// runCommandView returns what is known about the execution of a run command's script.
func runCommandView(machine behaviour.Object, name string) behaviour.Object {
	result := resultOf(machine, runCommandKey(name))
	status, _ := behaviour.Int(result, "status")
	view := behaviour.Object{"executionState": "Pending", "executionMessage": "", "exitCode": status, "statuses": []any{},
		"output": behaviour.Text(result, "stdout"), "error": behaviour.Text(result, "stderr")}
	for field, from := range map[string]string{"startTime": "started", "endTime": "ended"} {
		if at := behaviour.Text(result, from); at != "" {
			view[field] = at
		}
	}
	_, boots := GuestOf(machine)
	switch {
	case !boots:
		view["executionState"], view["executionMessage"] = "Unknown", strings.TrimSpace(notRun)
	case result != nil && !ended(result):
		view["executionState"] = "Running"
	case result == nil:
	case behaviour.Bool(result, "timedOut"):
		view["executionState"], view["executionMessage"] = "TimedOut", failed(status)
	case status != 0:
		view["executionState"], view["executionMessage"] = "Failed", failed(status)
	default:
		view["executionState"], view["executionMessage"] = "Succeeded", "Execution completed"
	}
	return view
}

func failed(status int) string {
	return fmt.Sprintf("Execution failed: failed to execute command: command terminated with exit status=%d", status)
}

// runCommandScripts returns the scripts of all run commands of a machine.
func runCommandScripts(w behaviour.World, machine azure.ID, doc behaviour.Object) []Script {
	var all []Script
	if s, runs := actionScript(doc); runs {
		all = append(all, s)
	}
	kind := MachineCommandType
	if machine.Is(schema.InstanceType) {
		kind = InstanceCommandType
	}
	for _, command := range w.List(machine, kind) {
		all = append(all, scriptOf(command))
	}
	return all
}

// scriptOf returns the script of a run command. Parameters with a name are variables, the others arguments.
func scriptOf(command behaviour.Object) Script {
	const otherwise = 90 * time.Minute
	name := behaviour.Text(command, "name")
	s := Script{
		Key: runCommandKey(name), Shell: "/bin/bash", Dir: "/var/lib/waagent/run-command-handler/download/" + name + "/0",
		URI: behaviour.Text(command, "properties.source.scriptUri"), User: behaviour.Text(command, "properties.runAsUser"),
		Text: cmp.Or(behaviour.Text(command, "properties.source.script"),
			commands[strings.ToLower(behaviour.Text(command, "properties.source.commandId"))]),
		Timeout: cmp.Or(time.Duration(schema.Number(command, "properties.timeoutInSeconds"))*time.Second, otherwise),
	}
	for _, path := range []string{"properties.parameters", protectedField} {
		for _, p := range behaviour.Objects(command, path) {
			name, value := behaviour.Text(p, "name"), behaviour.Text(p, "value")
			switch {
			case value == "":
			case name != "":
				s.Env = append(s.Env, name+"="+value)
			default:
				s.Args = append(s.Args, value)
			}
		}
	}
	return s
}
