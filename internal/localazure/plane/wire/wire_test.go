package wire_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/vm"
	"kaz/internal/localazure/core"
	"kaz/internal/localazure/plane/wire"
	"kaz/internal/localazure/providers"
)

// A machine reads its goal state and reports its health, which its document then has.
func TestMachineReportsItsHealth(t *testing.T) {
	e, err := core.New(core.Options{Providers: providers.All()})
	if err != nil {
		t.Fatal(err)
	}
	group := azure.GroupID(core.DefaultSubscription, "rg")
	machine := group.Resource("Microsoft.Compute/virtualMachines", "one")
	if err := e.Do(func(w behaviour.World) error {
		w.Put(group, behaviour.Object{"location": "westeurope"})
		w.Put(machine, behaviour.Object{"location": "westeurope", "properties": behaviour.Object{"vmId": "an-id"}})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s := wire.Service{Do: e.Do}
	ask := func(machine azure.ID, method, path, body string) (int, string) {
		w := httptest.NewRecorder()
		s.Handler(machine).ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		text, _ := io.ReadAll(w.Body)
		return w.Code, string(text)
	}
	status, text := ask(machine, "GET", "/machine/?comp=goalstate", "")
	if status != http.StatusOK || !strings.Contains(text, "<Incarnation>1</Incarnation>") || !strings.Contains(text, "<ContainerId>an-id</") {
		t.Errorf("goal state: %d %s", status, text)
	}
	if status, _ := ask(group.Resource("Microsoft.Compute/virtualMachines", "two"), "GET", "/machine/?comp=goalstate", ""); status != http.StatusGone {
		t.Errorf("goal state of no machine: %d", status)
	}
	report := func(health string) string {
		return "<Health><Container><RoleInstanceList><Role><Health>" + health + "</Health></Role></RoleInstanceList></Container></Health>"
	}
	for _, c := range []struct {
		body string
		want vm.Guest
	}{
		{report("<State>NotReady</State><Details><SubStatus>ProvisioningFailed</SubStatus><Description>no disk</Description></Details>"),
			vm.Guest{State: vm.GuestFailed, Message: "ProvisioningFailed: no disk"}},
		{report("<State>Ready</State>"), vm.Guest{State: vm.GuestReady}},
	} {
		if status, text := ask(machine, "POST", "/machine?comp=health", c.body); status != http.StatusOK {
			t.Errorf("%s: %d %s", c.body, status, text)
		}
		e.Look(func(w behaviour.World) {
			doc, _ := w.Get(machine)
			if got, _ := vm.GuestOf(doc); got != c.want {
				t.Errorf("%s: got %v, want %v", c.body, got, c.want)
			}
		})
	}
	if status, _ := ask(machine, "POST", "/machine?comp=health", "no report"); status != http.StatusBadRequest {
		t.Errorf("a report that is none: %d", status)
	}
}
