package core_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

const (
	machine = group + "/providers/Microsoft.Compute/virtualMachines/vm"
	disk    = group + "/providers/Microsoft.Compute/disks/d"
	account = group + "/providers/Microsoft.Storage/storageAccounts/sa"
	zone    = group + "/providers/Microsoft.Network/privateDnsZones/z.io"
	network = group + "/providers/Microsoft.Network/virtualNetworks/net"
)

// slow is an Azure in which things take their time.
func slow(t *testing.T) azureUnderTest {
	t.Helper()
	a := start(t, core.Options{Latency: 1, Seed: 7})
	a.group()
	return a
}

func state(a answer) string { return behaviour.Text(a.body, "properties.provisioningState") }

// status polls the URL in a reply's header.
func (a azureUnderTest) poll(first answer, header string) answer {
	a.Helper()
	url := first.header.Get(header)
	if !strings.HasPrefix(url, "http://example.com/subscriptions/") {
		a.Fatalf("%s: %q is not an absolute URL to this server", header, url)
	}
	return a.do("GET", url, "")
}

func TestCreationOfANetworkResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		began := time.Now()
		created := a.do("PUT", address, `{"location":"eastus"}`)
		if took := time.Since(began); took < time.Second || took > 30*time.Second {
			t.Errorf("the reply took %v", took)
		}
		if created.status != 201 || state(created) != "Updating" {
			t.Fatalf("create: %d %s", created.status, state(created))
		}
		for name, want := range map[string]string{"Azure-AsyncNotification": "Enabled", "Location": "", "ETag": "", "Retry-After": "3"} {
			if got := created.header.Get(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		if got := a.poll(created, "Azure-AsyncOperation"); got.body["status"] != "InProgress" || len(got.body) != 1 {
			t.Errorf("first poll: %d %v", got.status, got.body)
		}
		<-time.After(time.Minute)
		if got := a.poll(created, "Azure-AsyncOperation"); got.body["status"] != "Succeeded" || len(got.body) != 1 {
			t.Errorf("last poll: %d %v", got.status, got.body)
		}
		got := a.must("GET", address, "")
		if state(got) != "Succeeded" || behaviour.Text(got.body, "properties.ipAddress") == "" {
			t.Errorf("after the operation: %v", got.body)
		}
		if got.header.Get("ETag") != got.body["etag"] || got.body["etag"] == created.body["etag"] {
			t.Errorf("etag %v, header %q, when created %v", got.body["etag"], got.header.Get("ETag"), created.body["etag"])
		}
	})
}

func TestDeletionOfANetworkResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		a.must("PUT", address, `{"location":"eastus"}`)
		<-time.After(time.Minute)
		deleted := a.do("DELETE", address, "")
		if deleted.status != 202 || deleted.body != nil {
			t.Fatalf("delete: %d %v", deleted.status, deleted.body)
		}
		if got := a.poll(deleted, "Location"); got.status != 202 || got.header.Get("Retry-After") == "" {
			t.Errorf("poll of Location: %d %v", got.status, got.header)
		}
		if got := a.do("GET", address, ""); state(got) != "Deleting" {
			t.Errorf("while it is deleted: %d %v", got.status, got.body)
		}
		<-time.After(2 * time.Minute)
		if got := a.poll(deleted, "Location"); got.status != 204 {
			t.Errorf("last poll of Location: %d", got.status)
		}
		if got := a.do("GET", address, ""); got.status != 404 || got.code() != "ResourceNotFound" ||
			got.header.Get("x-ms-failure-cause") != "gateway" {
			t.Errorf("after the deletion: %d %v", got.status, got.body)
		}
		if got := a.do("DELETE", address, ""); got.status != 204 {
			t.Errorf("delete of what is not there: %d", got.status)
		}
	})
}

func TestANewerWriteSupersedesTheRunningOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		first := a.must("PUT", table, `{"location":"eastus"}`)
		second := a.must("PUT", table, `{"location":"eastus","tags":{"a":"b"}}`)
		got := a.poll(first, "Azure-AsyncOperation")
		details := behaviour.Objects(got.body, "error.details")
		if got.body["status"] != "Canceled" || len(details) != 1 || details[0]["code"] != "CanceledAndSupersededDueToAnotherOperation" {
			t.Errorf("the first: %v", got.body)
		}
		<-time.After(2 * time.Minute)
		if got := a.poll(second, "Azure-AsyncOperation"); got.body["status"] != "Succeeded" {
			t.Errorf("the second: %v", got.body)
		}
	})
}

func TestWritesToOtherChildrenGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		a.must("PUT", table, `{"location":"eastus"}`)
		<-time.After(time.Minute)
		const route = `{"properties":{"addressPrefix":"10.0.0.0/8"}}`
		first := a.must("PUT", table+"/routes/a", route)
		second := a.must("PUT", table+"/routes/b", route)
		<-time.After(time.Minute)
		for _, created := range []answer{first, second} {
			if got := a.poll(created, "Azure-AsyncOperation"); got.body["status"] != "Succeeded" {
				t.Errorf("%v", got.body)
			}
		}
		if n := len(behaviour.Objects(a.must("GET", table, "").body, "properties.routes")); n != 2 {
			t.Errorf("%d routes", n)
		}
		// What is being deleted cannot be written.
		a.must("DELETE", table+"/routes/a", "")
		if got := a.do("PUT", table+"/routes/a", route); got.status != 429 || got.code() != "AnotherOperationInProgress" ||
			got.header.Get("Retry-After") == "" {
			t.Errorf("write of a route that is being deleted: %d %v", got.status, got.body)
		}
		again := a.must("DELETE", table+"/routes/a", "")
		<-time.After(time.Minute)
		if got := a.poll(again, "Azure-AsyncOperation"); got.body["status"] != "Succeeded" {
			t.Errorf("second deletion: %v", got.body)
		}
		a.must("PUT", machine, `{"location":"eastus"}`)
		<-time.After(10 * time.Minute)
		a.must("DELETE", machine, "")
		if got := a.do("PUT", machine, `{"location":"eastus"}`); got.status != 409 || got.code() != "Conflict" {
			t.Errorf("write of a machine that is being deleted: %d %v", got.status, got.body)
		}
	})
}

func TestReferencesToWhatIsNotReadyAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		a.must("PUT", table, `{"location":"eastus"}`)
		body := `{"location":"eastus","properties":{"subnets":[{"name":"s","properties":{"routeTable":{"id":"` + table + `"}}}]}}`
		got := a.do("PUT", network, body)
		details := behaviour.Objects(got.body, "error.details")
		if got.status != 429 || got.code() != "RetryableError" || len(details) != 1 ||
			details[0]["code"] != "ReferencedResourceNotProvisioned" {
			t.Fatalf("reference to a table that is being created: %d %v", got.status, got.body)
		}
		<-time.After(2 * time.Minute)
		a.must("DELETE", table, "")
		got = a.do("PUT", network, body)
		details = behaviour.Objects(got.body, "error.details")
		if got.status != 429 || len(details) != 1 ||
			!strings.Contains(behaviour.Text(details[0], "message"),
				"Resource is in Deleting state and the last operation that updated/is updating the resource "+
					"is DeleteRouteTableOperation.") {
			t.Fatalf("reference to a table that is being deleted: %d %v", got.status, got.body)
		}
		<-time.After(2 * time.Minute)
		a.must("PUT", table, `{"location":"eastus"}`)
		<-time.After(2 * time.Minute)
		a.must("PUT", network, body)
	})
}

func TestReferencesToWhatFailedAreRefused(t *testing.T) {
	a := faulty(t, `{"type":"Microsoft.Network/routeTables","times":1,"fault":"operation","code":"InternalError"}`)
	a.must("PUT", table, `{"location":"eastus"}`)
	body := `{"location":"eastus","properties":{"subnets":[{"name":"s","properties":{"routeTable":{"id":"` + table + `"}}}]}}`
	got := a.do("PUT", network, body)
	details := behaviour.Objects(got.body, "error.details")
	if got.status != 429 || len(details) != 1 ||
		!strings.Contains(behaviour.Text(details[0], "message"),
			"Resource is in Failed state and the last operation that updated/is updating the resource is PutRouteTableOperation.") {
		t.Fatalf("reference to a table that failed: %d %v", got.status, got.body)
	}
	a.must("PUT", table, `{"location":"eastus"}`)
	a.must("PUT", network, body)
}

func TestReferencesToNothingAreRefused(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	got := a.do("PUT", network, `{"location":"eastus","properties":{"subnets":[{"name":"s","properties":{"routeTable":{"id":"`+
		table+`"}}}]}}`)
	if got.status != 400 || got.code() != "InvalidResourceReference" ||
		!strings.Contains(behaviour.Text(got.body, "error.message"), table) {
		t.Errorf("%d %v", got.status, got.body)
	}
}

func TestDiskOperationsCarryTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		created := a.do("PUT", disk, `{"location":"eastus","properties":{"diskSizeGB":10}}`)
		if created.status != 202 || state(created) != "Updating" || created.header.Get("Azure-AsyncNotification") != "" {
			t.Fatalf("create: %d %v", created.status, created.body)
		}
		<-time.After(time.Minute)
		got := a.poll(created, "Azure-AsyncOperation")
		if got.body["status"] != "Succeeded" || behaviour.Text(got.body, "properties.output.sku.name") != "Standard_LRS" ||
			got.body["endTime"] == nil {
			t.Errorf("last poll: %v", got.body)
		}
		if got := a.poll(created, "Location"); got.status != 200 || got.body["id"] != disk {
			t.Errorf("monitor: %d %v", got.status, got.body)
		}
	})
}

func TestStorageAccountsAppearWhenTheyAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		created := a.do("PUT", account, `{"location":"eastus"}`)
		if created.status != 202 || created.body != nil || created.header.Get("Azure-AsyncOperation") != "" {
			t.Fatalf("create: %d %v %v", created.status, created.body, created.header)
		}
		if got := a.do("GET", account, ""); got.status != 404 {
			t.Errorf("before it is done: %d", got.status)
		}
		if got := a.do("PUT", account+"/shares/x", `{}`); got.status != 404 || got.code() != "ParentResourceNotFound" {
			t.Errorf("share in an account that is not done: %d %v", got.status, got.body)
		}
		if got := a.poll(created, "Location"); got.status != 202 || got.body != nil {
			t.Errorf("poll: %d %v", got.status, got.body)
		}
		<-time.After(5 * time.Minute)
		if got := a.poll(created, "Location"); got.status != 200 || got.body["id"] != account {
			t.Errorf("last poll: %d %v", got.status, got.body)
		}
		got := a.must("GET", account, "")
		if tags, ok := got.body["tags"].(behaviour.Object); !ok || len(tags) != 0 {
			t.Errorf("tags of an account without: %v", got.body["tags"])
		}
		if got := a.do("PUT", account, `{"location":"eastus"}`); got.status != 200 {
			t.Errorf("update: %d", got.status)
		}
	})
}

func TestPrivateZonesReportPreconditionsInThePoll(t *testing.T) {
	a := start(t, core.Options{})
	a.group()
	created := a.do("PUT", zone, `{"location":"global"}`)
	if created.status != 202 || len(created.body) != 0 {
		t.Fatalf("create: %d %v", created.status, created.body)
	}
	if got := a.poll(created, "Azure-AsyncOperation"); got.body["status"] != "Succeeded" {
		t.Errorf("poll of the creation: %v", got.body)
	}
	if got := a.poll(created, "Location"); got.status != 200 || got.body["location"] != "global" {
		t.Errorf("poll of Location: %d %v", got.status, got.body)
	}
	got := a.do("PUT", zone, `{"location":"global"}`, "If-Match", "other")
	if got.status != 202 && got.status != 200 {
		t.Fatalf("write with another etag: %d %v", got.status, got.body)
	}
	poll := a.poll(got, "Azure-AsyncOperation")
	if poll.body["status"] != "Failed" || poll.code() != "PreconditionFailed" {
		t.Errorf("poll: %v", poll.body)
	}
	id := created.header.Get("Azure-AsyncOperation")
	id, _, _ = strings.Cut(id[strings.LastIndex(id, "/")+1:], "?")
	text, err := base64.RawStdEncoding.DecodeString(id)
	if err != nil || !strings.HasPrefix(string(text), "FrontEndAsyncOperation;UpsertPrivateDnsZone;") {
		t.Errorf("operation id %q: %v", text, err)
	}
}

func TestDeletionOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		a.must("PUT", table, `{"location":"eastus"}`)
		a.must("PUT", network, `{"location":"eastus"}`)
		<-time.After(time.Minute)
		deleted := a.do("DELETE", strings.ToUpper(group), "")
		if deleted.status != 202 || deleted.header.Get("Azure-AsyncOperation") != "" || deleted.header.Get("Retry-After") != "15" {
			t.Fatalf("delete: %d %v", deleted.status, deleted.header)
		}
		if got := a.do("GET", group, ""); state(got) != "Deleting" {
			t.Errorf("while it is deleted: %d %v", got.status, got.body)
		}
		if got := a.do("PUT", table, `{"location":"eastus"}`); got.status != 409 || got.code() != "ResourceGroupBeingDeleted" {
			t.Errorf("write in a group that is deleted: %d %v", got.status, got.body)
		}
		if got := a.poll(deleted, "Location"); got.status != 202 || got.header.Get("Location") == "" {
			t.Errorf("poll: %d %v", got.status, got.header)
		}
		<-time.After(10 * time.Minute)
		if got := a.poll(deleted, "Location"); got.status != 200 || got.body != nil {
			t.Errorf("last poll: %d %v", got.status, got.body)
		}
		for _, id := range []string{group, table, network} {
			if got := a.do("GET", id, ""); got.status != 404 || got.code() != "ResourceGroupNotFound" {
				t.Errorf("%s: %d %v", id, got.status, got.body)
			}
		}
	})
}

func TestLongActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		a.must("PUT", machine, `{"location":"eastus"}`)
		<-time.After(10 * time.Minute)
		before := a.must("GET", machine, "")
		stopped := a.do("POST", machine+"/poweroff", "")
		if stopped.status != 202 || stopped.body != nil {
			t.Fatalf("powerOff: %d %v", stopped.status, stopped.body)
		}
		if got := a.must("GET", machine, ""); state(got) != "Updating" || got.body["etag"] != before.body["etag"] {
			t.Errorf("while it stops: %v", got.body)
		}
		<-time.After(5 * time.Minute)
		if got := a.poll(stopped, "Azure-AsyncOperation"); got.body["status"] != "Succeeded" || got.body["name"] == nil {
			t.Errorf("poll: %v", got.body)
		}
		if got := a.must("GET", machine+"/instanceView", ""); got.body["power"] != "stopped" {
			t.Errorf("view: %v", got.body)
		}
		if got := a.do("POST", machine+"/listKeys", ""); got.status != 200 || got.body["keys"] == nil {
			t.Errorf("short action: %d %v", got.status, got.body)
		}
		if got := a.do("POST", machine+"/explode", ""); got.status != 404 {
			t.Errorf("unknown action: %d %v", got.status, got.body)
		}
	})
}

// With a Queue, an operation ends after those before it.
func TestComputeOperationsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		first := a.must("PUT", machine, `{"location":"eastus"}`)
		second := a.must("PUT", machine, `{"location":"eastus","tags":{"a":"b"}}`)
		for range 1000 {
			done := a.poll(second, "Azure-AsyncOperation").body["status"] == "Succeeded"
			if done && a.poll(first, "Azure-AsyncOperation").body["status"] != "Succeeded" {
				t.Fatal("the second write was done before the first")
			}
			if done {
				return
			}
			<-time.After(time.Second)
		}
		t.Fatal("the second write never ends")
	})
}

func TestAClientThatLeavesDoesNotStopTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		r, err := http.NewRequestWithContext(t.Context(), "PUT", "http://azure"+table+"?api-version=2025-05-01",
			strings.NewReader(`{"location":"eastus"}`))
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Transport: a.Transport(), Timeout: 10 * time.Millisecond}
		if answer, err := client.Do(r); err == nil {
			answer.Body.Close()
			t.Fatal("a reply before its time")
		}
		<-time.After(time.Minute)
		if got := a.do("GET", table, ""); state(got) != "Succeeded" {
			t.Errorf("the write: %d %v", got.status, got.body)
		}
	})
}

func TestChangesAreReportedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := slow(t)
		var states []string
		go a.Changes(t.Context(), func(changes []core.Change) {
			for _, c := range changes {
				if c.New == nil {
					states = append(states, "gone")
				} else {
					states = append(states, behaviour.Text(c.New, "properties.provisioningState"))
				}
			}
		})
		synctest.Wait()
		a.must("PUT", address, `{"location":"eastus"}`)
		<-time.After(time.Minute) // no request comes, yet the operation ends
		synctest.Wait()
		if got := strings.Join(states, " "); got != "Updating Succeeded" {
			t.Errorf("after a minute: %s", got)
		}
		a.must("DELETE", address, "")
		<-time.After(time.Minute)
		synctest.Wait()
		if got := strings.Join(states, " "); got != "Updating Succeeded Deleting gone" {
			t.Errorf("after the deletion: %s", got)
		}
	})
}
