package vm

import (
	"strings"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/compute/schema"
)

// RunCommand returns the action that runs a script on a machine. The local Azure runs nothing and replies that the script printed
// nothing.
func RunCommand() behaviour.Action {
	return behaviour.Action{
		Long: true, Headers: behaviour.AsyncOperation | behaviour.Location,
		Do: func(c *behaviour.Call) (any, error) {
			if err := CheckStays(c.Old); err != nil {
				return nil, err
			}
			if behaviour.Text(c.Body, "commandId") == "" {
				return nil, behaviour.Invalid("InvalidParameter", "Required parameter 'commandId' is missing (null).").At("commandId")
			}
			if PowerOf(c.Old) != Running {
				return nil, behaviour.Conflict("OperationNotAllowed",
					"The operation requires the VM to be running (or set to run).")
			}
			c.Notes["command"] = behaviour.Text(c.Body, "commandId")
			return nil, nil
		},
		Settle: func(c *behaviour.Call) (any, error) {
			output := func(code, message string) behaviour.Object {
				return behaviour.Object{"code": code, "level": "Info", "displayStatus": "Provisioning succeeded", "message": message}
			}
			if strings.EqualFold(behaviour.Text(c.Notes, "command"), "RunPowerShellScript") {
				return behaviour.Object{"value": []any{output("ComponentStatus/StdOut/succeeded", ""),
					output("ComponentStatus/StdErr/succeeded", "")}}, nil
			}
			return behaviour.Object{"value": []any{
				output("ProvisioningState/succeeded", "Enable succeeded: \n[stdout]\n\n[stderr]\n")}}, nil
		},
	}
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
