package vm

import (
	"strconv"
	"strings"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
)

const (
	// commandField is the field of a machine's document with the command that it runs now, countField how many it has run.
	commandField = schema.Runtime + ".command"
	countField   = schema.Runtime + ".commands"
	// commandKey is the key of the script of that command.
	commandKey = "runCommand"
)

// RunCommand returns the action that runs a script on a machine. A machine that is only a document runs nothing, and the reply says
// so.
func RunCommand() behaviour.Action {
	return behaviour.Action{
		Long: true, Headers: behaviour.AsyncOperation | behaviour.Location,
		Do:     beginCommand,
		Settle: endCommand,
	}
}

// commands are the scripts of the commands for machines with Linux, unless a request gives one.
var commands = map[string]string{
	"runshellscript": "echo This is a sample script\necho Optional parameters: $0 $1",
	"ifconfig":       "ifconfig",
}

func beginCommand(c *behaviour.Call) (any, error) {
	if err := CheckStays(c.Old); err != nil {
		return nil, err
	}
	name := behaviour.Text(c.Body, "commandId")
	if err := schema.Required(c.Body, "commandId", "commandId"); err != nil {
		return nil, err
	}
	if PowerOf(c.Old) != Running {
		return nil, behaviour.Conflict("OperationNotAllowed", "The operation requires the VM to be running (or set to run).")
	}
	if behaviour.Sub(c.Old, commandField) != nil {
		return nil, behaviour.Conflict("Conflict",
			"Run command extension execution is in progress. Please wait for completion before invoking a run command.")
	}
	c.Notes["command"] = name
	g, boots := GuestOf(c.Old)
	if !boots {
		return nil, nil
	}
	text, known := commands[strings.ToLower(name)]
	switch {
	case !known:
		return nil, unknownCommand(name)
	case g.State == GuestFailed:
		return nil, agentFails(c.Old)
	}
	if lines := behaviour.Texts(c.Body, "script"); len(lines) > 0 {
		text = strings.Join(lines, "\n")
	}
	parameters := behaviour.Clone(behaviour.Array(c.Body, "parameters"))
	behaviour.Set(c.Doc, commandField, behaviour.Object{"script": text, "parameters": parameters})
	behaviour.Set(c.Doc, countField, schema.Number(c.Doc, countField)+1)
	delete(behaviour.Sub(c.Doc, resultsField), commandKey)
	return nil, nil
}

// agentFails is the error of an action that needs the guest agent, if the machine's software did not start.
func agentFails(machine behaviour.Object) *behaviour.Error {
	return behaviour.Conflict("VMAgentStatusCommunicationError", "VM '%s' has not reported status for VM agent or extensions. Please "+
		"verify that the OS is up and healthy, the VM has a running VM agent, and that it can establish outbound connections to Azure "+
		"storage.", nameOf(machine))
}

func unknownCommand(name string) error {
	return behaviour.Invalid("InvalidParameter", "The value '%s' of parameter 'commandId' is invalid. A machine with Linux has the "+
		"commands RunShellScript and ifconfig.", name).At("commandId")
}

// actionScript returns the script of the command that a machine runs, false for none.
func actionScript(machine behaviour.Object) (Script, bool) {
	command := behaviour.Sub(machine, commandField)
	if command == nil {
		return Script{}, false
	}
	const longest = 90 * time.Minute
	s := Script{Key: commandKey, Text: behaviour.Text(command, "script"), Shell: "/bin/sh", Timeout: longest,
		Dir: "/var/lib/waagent/run-command/download/" + strconv.Itoa(schema.Number(machine, countField)-1)}
	for _, p := range behaviour.Objects(command, "parameters") { // each one is a variable and an argument
		value := behaviour.Text(p, "value")
		s.Args = append(s.Args, value)
		if name := behaviour.Text(p, "name"); name != "" {
			s.Env = append(s.Env, name+"="+value)
		}
	}
	return s, true
}

// notRun is what the reply of a machine that is only a document says.
const notRun = "The machine is only a document of the local Azure: the script did not run.\n"

// endCommand returns the output of a command. As in Azure, a script that fails is no failure of the command.
func endCommand(c *behaviour.Call) (any, error) {
	stdout, stderr := "", notRun
	if behaviour.Sub(c.Doc, commandField) != nil {
		g, _ := GuestOf(c.Doc)
		result := resultOf(c.Doc, commandKey)
		switch {
		case g.State == GuestFailed:
			failure := agentFails(c.Doc)
			failure.Keep = true
			c.Edit(c.ID, func(doc behaviour.Object) { behaviour.Remove(doc, commandField) })
			return nil, failure
		case !ended(result):
			return nil, behaviour.Later()
		}
		stdout, stderr = behaviour.Text(result, "stdout"), behaviour.Text(result, "stderr")
		behaviour.Remove(c.Doc, commandField)
		delete(behaviour.Sub(c.Doc, resultsField), commandKey)
	}
	output := func(code, message string) behaviour.Object {
		return behaviour.Object{"code": code, "level": "Info", "displayStatus": "Provisioning succeeded", "message": message}
	}
	if strings.EqualFold(behaviour.Text(c.Notes, "command"), "RunPowerShellScript") {
		return behaviour.Object{"value": []any{output("ComponentStatus/StdOut/succeeded", stdout),
			output("ComponentStatus/StdErr/succeeded", stderr)}}, nil
	}
	return behaviour.Object{"value": []any{
		output("ProvisioningState/succeeded", outputMessage("Enable succeeded: ", stdout, stderr))}}, nil
}

// capture returns the action that copies the disks of a generalized machine, and replies with a template of such machines.
func capture() behaviour.Action {
	return behaviour.Action{
		Long: true, Headers: behaviour.AsyncOperation | behaviour.Location,
		Do: func(c *behaviour.Call) (any, error) {
			for _, field := range []string{"vhdPrefix", "destinationContainerName"} {
				if err := schema.Required(c.Body, field, field); err != nil {
					return nil, err
				}
			}
			if !behaviour.Bool(c.Old, schema.Runtime+".generalized") {
				return nil, behaviour.Conflict("OperationNotAllowed",
					"Operation 'CaptureImage' is not allowed on VM '%s' since the VM is not generalized.", c.ID.Name())
			}
			return nil, nil
		},
		Settle: func(c *behaviour.Call) (any, error) {
			properties := behaviour.Object{}
			for _, part := range []string{"hardwareProfile", "storageProfile"} {
				properties[part] = behaviour.Clone(behaviour.At(c.Doc, "properties."+part))
			}
			return behaviour.Object{
				"$schema":        "http://schema.management.azure.com/schemas/2014-04-01-preview/VM_IP.json",
				"contentVersion": "1.0.0.0",
				"parameters":     behaviour.Object{"vmName": behaviour.Object{"type": "string"}},
				"resources": []any{behaviour.Object{"type": schema.MachineType, "apiVersion": "2015-06-15",
					"name": "[parameters('vmName')]", "location": c.Location(), "properties": properties}},
			}, nil
		},
	}
}

// assessPatches returns the action that looks for updates. The guests of the local Azure have none.
func assessPatches() behaviour.Action {
	return behaviour.Action{
		Long: true, Headers: behaviour.AsyncOperation | behaviour.Location, Do: RefuseLeaving,
		Settle: func(c *behaviour.Call) (any, error) {
			return behaviour.Object{"status": "Succeeded", "assessmentActivityId": c.GUID(), "rebootPending": false,
				"criticalAndSecurityPatchCount": 0, "otherPatchCount": 0, "startDateTime": behaviour.Stamp(c.Now()),
				"availablePatches": []any{}}, nil
		},
	}
}
