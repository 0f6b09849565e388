package compute_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/core"
)

// guest is a machine that boots, as what runs machines sees it.
type guest struct {
	subscription
	id azure.ID
}

// bootedMachine makes a machine with software that is ready.
func (w subscription) bootedMachine() guest {
	w.Helper()
	w.must("PUT", machine, machineBody(w.newInterface("nic"), func(doc behaviour.Object) {
		behaviour.Set(doc, "properties.osProfile.customData", "I2Nsb3VkLWNvbmZpZwo=")
	}))
	return w.ready(machine)
}

// bootedInstance makes an instance of a scale set with software that is ready.
func (w subscription) bootedInstance() guest {
	w.Helper()
	w.scaleSet(model{capacity: 1})
	return w.ready(first)
}

func (w subscription) ready(id string) guest {
	g := guest{w, azure.ID(id)}
	g.edit(func(in behaviour.World, doc behaviour.Object) {
		vm.SetGuest(doc, vm.Guest{State: vm.GuestReady}, in.Now())
	})
	return g
}

func (g guest) edit(f func(in behaviour.World, doc behaviour.Object)) {
	g.Helper()
	if err := g.Do(func(in behaviour.World) error {
		in.Edit(g.id, func(doc behaviour.Object) { f(in, doc) })
		return nil
	}); err != nil {
		g.Fatal(err)
	}
}

// scripts returns what the machine must run now.
func (g guest) scripts() (all []vm.Script) {
	g.Look(func(in behaviour.World) {
		doc, _ := in.Get(g.id)
		all = vm.Scripts(in, g.id, doc)
	})
	return all
}

// next returns the only script that the machine must run now.
func (g guest) next() vm.Script {
	g.Helper()
	all := g.scripts()
	if len(all) != 1 {
		g.Fatalf("%d scripts, want 1: %+v", len(all), all)
	}
	return all[0]
}

// end records the result of a script, and lets the operation that waits for it end.
func (g guest) end(s vm.Script, r vm.Result) {
	g.Helper()
	g.edit(func(in behaviour.World, doc behaviour.Object) { vm.SetResult(doc, s.Key, r, in.Now()) })
	<-time.After(time.Second)
}

// onBoth runs a test on a virtual machine and on an instance of a scale set, that boot.
func onBoth(t *testing.T, f func(g guest)) {
	t.Helper()
	for name, start := range map[string]func(subscription) guest{"machine": subscription.bootedMachine, "instance": subscription.bootedInstance} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(start(newSubscription(t, core.Options{Boots: true}))) })
		})
	}
}

// A command of a machine that boots is an operation until its script has ended. Its output is the output of the script.
func TestCommandOfAMachineThatBoots(t *testing.T) {
	onBoth(t, func(g guest) {
		command := string(g.id) + "/runCommand"
		body := `{"commandId":"RunShellScript","script":["echo $greeting","echo $1"],"parameters":[{"name":"greeting","value":"hello"}]}`
		poll := g.do("POST", command, body).Header.Get("Azure-AsyncOperation")
		s := g.next()
		if s.Text != "echo $greeting\necho $1" || s.Dir != "/var/lib/waagent/run-command/download/0" || s.Timeout != 90*time.Minute ||
			strings.Join(s.Env, " ") != "greeting=hello" || strings.Join(s.Args, " ") != "hello" {
			t := g.TB
			t.Errorf("script %+v", s)
		}
		<-time.After(time.Minute)
		g.want(g.get(poll), "status", "InProgress")
		g.refused("POST", command, body, 409, "Conflict")
		g.end(s, vm.Result{Status: 2, Stdout: "hello\n", Stderr: "no\n"})
		g.want(g.get(poll), "status", "Succeeded")
		output := behaviour.Objects(g.get(poll), "properties.output.value")[0]
		g.want(output, "code", "ProvisioningState/succeeded")
		g.want(output, "message", "Enable succeeded: \n[stdout]\nhello\n\n[stderr]\nno\n")
		if left := g.scripts(); len(left) != 0 {
			g.Errorf("scripts after the end: %+v", left)
		}
		g.must("POST", command, `{"commandId":"ifconfig"}`)
		if s = g.next(); s.Text != "ifconfig" || s.Dir != "/var/lib/waagent/run-command/download/1" {
			g.Errorf("second script %+v", s)
		}
		g.end(s, vm.Result{})
		g.refused("POST", command, `{"commandId":"RunPowerShellScript"}`, 400, "InvalidParameter")
		g.refused("POST", command, `{}`, 400, "InvalidParameter")
	})
}

// A command fails if the software of the machine did.
func TestCommandOfAMachineThatFailed(t *testing.T) {
	onBoth(t, func(g guest) {
		poll := g.do("POST", string(g.id)+"/runCommand", `{"commandId":"RunShellScript"}`).Header.Get("Azure-AsyncOperation")
		g.edit(func(in behaviour.World, doc behaviour.Object) {
			vm.SetGuest(doc, vm.Guest{State: vm.GuestFailed, Message: "no"}, in.Now())
		})
		<-time.After(time.Second)
		g.want(g.get(poll), "error.code", "VMAgentStatusCommunicationError")
		g.refused("POST", string(g.id)+"/runCommand", `{"commandId":"RunShellScript"}`, 409, "VMAgentStatusCommunicationError")
	})
}

// A machine that is only a document runs nothing, and says so.
func TestCommandOfADocument(t *testing.T) {
	w := newSubscription(t, core.Options{})
	w.must("PUT", machine, machineBody(w.newInterface("nic"), nil))
	poll := w.do("POST", machine+"/runCommand", `{"commandId":"RunShellScript","script":["true"]}`).Header.Get("Azure-AsyncOperation")
	w.want(behaviour.Objects(w.get(poll), "properties.output.value")[0], "message", "Enable succeeded: \n[stdout]\n\n[stderr]\n"+
		"The machine is only a document of the local Azure: the script did not run.\n")
	w.must("PUT", machine+"/runCommands/c", `{"location":"eastus","properties":{"source":{"script":"true"}}}`)
	got := w.get(machine + "/runCommands/c?$expand=instanceView")
	w.want(got, "properties.provisioningState", "Succeeded")
	w.want(got, "properties.instanceView.executionState", "Unknown")
}

// A run command runs its script once for each change. Its instance view shows the execution.
func TestRunCommandResource(t *testing.T) {
	onBoth(t, func(g guest) {
		command := string(g.id) + "/runCommands/Setup"
		body := func(script, more string) string {
			return `{"location":"eastus","properties":{"source":{"script":"` + script + `"}` + more + `}}`
		}
		state := func(want string) behaviour.Object {
			g.Helper()
			got := g.get(command + "?$expand=instanceView")
			g.want(got, "properties.instanceView.executionState", want)
			return got
		}
		g.do("PUT", command, body("true", `,"timeoutInSeconds":7,"runAsUser":"me","parameters":[{"name":"a","value":"b"},{"value":"c"}],
			"protectedParameters":[{"name":"key","value":"secret"}]`))
		s := g.next()
		if s.Text != "true" || s.User != "me" || s.Timeout != 7*time.Second || strings.Join(s.Env, " ") != "a=b key=secret" ||
			strings.Join(s.Args, " ") != "c" || s.Dir != "/var/lib/waagent/run-command-handler/download/Setup/0" {
			g.Errorf("script %+v", s)
		}
		state("Pending")
		g.edit(func(in behaviour.World, doc behaviour.Object) { vm.SetStarted(doc, s.Key, in.Now()) })
		g.want(state("Running"), "properties.provisioningState", "Creating")
		g.next() // runs again if its machine ends before it does
		g.end(s, vm.Result{Stdout: "out", Stderr: "err"})
		got := state("Succeeded")
		g.want(got, "properties.provisioningState", "Succeeded")
		g.want(got, "properties.instanceView.output", "out")
		g.want(got, "properties.instanceView.error", "err")
		g.want(got, "properties.protectedParameters", nil)
		if behaviour.Text(got, "properties.instanceView.startTime") == "" || behaviour.Text(got, "properties.instanceView.endTime") == "" {
			g.Errorf("times of %v", got)
		}
		g.want(g.get(command), "properties.instanceView", nil)
		g.do("PUT", command, body("true", ""))
		if all := g.scripts(); len(all) != 0 {
			g.Errorf("scripts without a change: %+v", all)
		}
		g.do("PATCH", command, `{"properties":{"source":{"script":"false"}}}`)
		g.end(g.next(), vm.Result{Status: 1})
		g.want(state("Failed"), "properties.instanceView.exitCode", 1)
		g.want(g.get(command), "properties.provisioningState", "Succeeded")
		g.do("PUT", command, body("exit 3", `,"treatFailureAsDeploymentFailure":true`))
		g.end(g.next(), vm.Result{Status: 124, TimedOut: true})
		g.want(state("TimedOut"), "properties.provisioningState", "Failed")
		g.must("PUT", command, body("true", `,"asyncExecution":true`))
		g.want(state("Pending"), "properties.provisioningState", "Succeeded")
		g.must("DELETE", command, "")
		if all := g.scripts(); len(all) != 0 {
			g.Errorf("scripts after the deletion: %+v", all)
		}
	})
}

func TestRefusedRunCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newSubscription(t, core.Options{Boots: true}).bootedMachine()
		for properties, code := range map[string]string{
			`{}`: "InvalidParameter",
			`{"source":{"script":"true","scriptUri":"https://x"}}`:            "InvalidParameter",
			`{"source":{"script":"true"},"timeoutInSeconds":-1}`:              "InvalidParameter",
			`{"source":{"commandId":"RunPowerShellScript"}}`:                  "InvalidParameter",
			`{"source":{"script":"true"},"outputBlobUri":"https://x/c/blob"}`: "InvalidParameter",
		} {
			g.refused("PUT", machine+"/runCommands/c", `{"location":"eastus","properties":`+properties+`}`, 400, code)
		}
		g.must("POST", machine+"/deallocate", "")
		g.refused("PUT", machine+"/runCommands/c", `{"location":"eastus","properties":{"source":{"script":"true"}}}`, 409,
			"OperationNotAllowed")
	})
}

// The console of a machine has addresses in an account of the user, or in one of Azure, which the instance view does not name.
func TestBootDiagnostics(t *testing.T) {
	w := newSubscription(t, core.Options{})
	const retrieve = "/retrieveBootDiagnosticsData"
	w.must("PUT", machine, machineBody(w.newInterface("nic"), nil))
	w.refused("POST", machine+retrieve, "", 409, "OperationNotAllowed")
	w.want(w.get(machine+"/instanceView"), "bootDiagnostics", nil)
	w.must("PATCH", machine, `{"properties":{"diagnosticsProfile":{"bootDiagnostics":{"enabled":true}}}}`)
	w.want(w.get(machine+"/instanceView"), "bootDiagnostics", behaviour.Object{})
	log := behaviour.Text(w.must("POST", machine+retrieve+"?sasUriExpirationTimeInMinutes=5", "").Body, "serialConsoleLogBlobUri")
	if !strings.HasPrefix(log, "https://md-") || !strings.Contains(log, ".serialconsole.log?se=") {
		t.Errorf("address %s", log)
	}
	if text(w.get(machine)) == "" || strings.Contains(text(w.get(machine)), "diagnosticsKey") {
		t.Error("the machine shows the key of its console")
	}
	for _, minutes := range []string{"0", "1441", "x"} {
		w.refused("POST", machine+retrieve+"?sasUriExpirationTimeInMinutes="+minutes, "", 400, "InvalidParameter")
	}
	w.must("PATCH", machine,
		`{"properties":{"diagnosticsProfile":{"bootDiagnostics":{"storageUri":"https://account1.blob.core.windows.net/"}}}}`)
	view := w.get(machine + "/instanceView")
	uri := behaviour.Text(view, "bootDiagnostics.serialConsoleLogBlobUri")
	if !strings.HasPrefix(uri, "https://account1.blob.core.windows.net/bootdiagnostics-vm-") || strings.Contains(uri, "?") {
		t.Errorf("address in the instance view: %s", uri)
	}
	w.refused("POST", machine+retrieve, "", 409, "StorageAccountNotFound")
	w.scaleSet(model{capacity: 1, extra: behaviour.Object{
		"virtualMachineProfile.diagnosticsProfile": behaviour.Object{"bootDiagnostics": behaviour.Object{"enabled": true}}}})
	log = behaviour.Text(w.must("POST", first+retrieve, "").Body, "serialConsoleLogBlobUri")
	if !strings.Contains(log, "/bootdiagnostics-np0-") || !strings.Contains(log, "/np_0.") {
		t.Errorf("address of an instance: %s", log)
	}
}
