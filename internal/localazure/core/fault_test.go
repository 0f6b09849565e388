package core_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

func faulty(t *testing.T, rules string) azureUnderTest {
	t.Helper()
	faults, err := core.ParseFaults([]byte(`{"faults":[` + rules + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	a := start(t, core.Options{})
	a.group()
	if err := a.SetFaults(faults); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestFaultOfTheSecondWrite(t *testing.T) {
	a := faulty(t,
		`{"method":"PUT","type":"microsoft.network/routetables","name":"r*","nth":2,"fault":"error","status":429,"retryAfter":7}`)
	a.must("PUT", table, `{"location":"eastus"}`)
	a.must("PUT", address, `{"location":"eastus"}`)
	got := a.do("PUT", table, `{"location":"eastus","tags":{"a":"b"}}`)
	if got.status != 429 || got.code() != "TooManyRequests" || got.header.Get("Retry-After") != "7" {
		t.Errorf("second write: %d %v", got.status, got.body)
	}
	if got := a.must("GET", table, ""); got.body["tags"] != nil {
		t.Errorf("the refused write was done: %v", got.body)
	}
	a.must("PUT", table, `{"location":"eastus"}`)
}

func TestFaultInsideAnOperation(t *testing.T) {
	a := faulty(t,
		`{"method":"PUT","type":"Microsoft.Compute/virtualMachines","times":1,"fault":"operation","code":"AllocationFailed",
			"message":"no room"}`)
	created := a.must("PUT", machine, `{"location":"eastus"}`)
	got := a.poll(created, "Azure-AsyncOperation")
	if got.status != 200 || got.body["status"] != "Failed" || got.code() != "AllocationFailed" ||
		behaviour.Text(got.body, "error.message") != "no room" {
		t.Errorf("poll: %d %v", got.status, got.body)
	}
	if got := a.must("GET", machine, ""); state(got) != "Failed" {
		t.Errorf("provisioningState %s", state(got))
	}
	created = a.must("PUT", machine, `{"location":"eastus"}`)
	if got := a.poll(created, "Azure-AsyncOperation"); got.body["status"] != "Succeeded" {
		t.Errorf("the next write: %v", got.body)
	}
}

// A creation drops a part of its request, in each element of a list. An update does not.
func TestACreationDropsAPart(t *testing.T) {
	a := faulty(t, `{"method":"PUT","type":"Microsoft.Network/virtualNetworks","fault":"drop",
		"path":"properties.subnets.properties.routeTable"}`)
	a.must("PUT", table, `{"location":"eastus"}`)
	linked := `{"location":"eastus","properties":{"subnets":[{"name":"s","properties":{"routeTable":{"id":"` + table + `"}}}]}}`
	for _, want := range []string{"", table} {
		a.must("PUT", network, linked)
		subnet := behaviour.Objects(a.must("GET", network, "").body, "properties.subnets")[0]
		if got := string(behaviour.RefID(subnet, "properties.routeTable")); got != want {
			t.Errorf("the subnet has the route table %q, want %q", got, want)
		}
	}
}

// A read answers with another value, or with none, in a list as for a resource. Nothing changes in Azure.
func TestReadWithAnotherValue(t *testing.T) {
	a := faulty(t, `{"method":"GET","type":"Microsoft.Network/routeTables","nth":1,"fault":"answer","path":"tags.v","value":2},
		{"method":"GET","type":"Microsoft.Network/routeTables","nth":1,"fault":"answer","path":"tags.v","value":3},
		{"method":"GET","type":"Microsoft.Network/routeTables","nth":1,"fault":"answer","path":"tags"}`)
	a.must("PUT", table, `{"location":"eastus","tags":{"v":"1"}}`)
	if got := a.must("GET", table, "").body["tags"]; !reflect.DeepEqual(got, map[string]any{"v": 2.0}) {
		t.Errorf("tags %v", got)
	}
	all := a.must("GET", table[:strings.LastIndex(table, "/")], "").body
	if got := behaviour.Objects(all, "value")[0]["tags"]; !reflect.DeepEqual(got, map[string]any{"v": 3.0}) {
		t.Errorf("tags in the list %v", got)
	}
	if got, is := a.must("GET", table, "").body["tags"]; is {
		t.Errorf("tags %v, want none", got)
	}
	if got := behaviour.Text(a.must("GET", table, "").body, "tags.v"); got != "1" {
		t.Errorf("tag %q without the fault", got)
	}
}

func TestLostReply(t *testing.T) {
	a := faulty(t, `{"method":"PUT","times":1,"fault":"lost"}`)
	client := http.Client{Transport: a.Transport()}
	r, err := http.NewRequestWithContext(t.Context(), "PUT", "https://azure"+table+"?api-version=2025-05-01",
		strings.NewReader(`{"location":"eastus"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err == nil {
		answer.Body.Close()
	}
	if err == nil || errors.Is(err, http.ErrAbortHandler) {
		t.Fatalf("lost reply: %v", err)
	}
	a.must("GET", table, "")
}

func TestStaleRead(t *testing.T) {
	a := faulty(t, `{"method":"GET","type":"Microsoft.Network/routeTables","times":1,"fault":"stale"}`)
	a.must("PUT", table, `{"location":"eastus","tags":{"v":"1"}}`)
	a.must("DELETE", address, "") // ends the operation
	a.must("PUT", table, `{"location":"eastus","tags":{"v":"2"}}`)
	if got := a.do("GET", table, ""); behaviour.Text(got.body, "properties.provisioningState") != "Updating" {
		t.Errorf("stale read: %d %v", got.status, got.body)
	}
	if got := a.must("GET", table, ""); behaviour.Text(got.body, "tags.v") != "2" || state(got) != "Succeeded" {
		t.Errorf("next read: %v", got.body)
	}
}

func TestCrashHook(t *testing.T) {
	crashed := ""
	a := start(t, core.Options{
		Faults: []core.Fault{{Method: "PUT", Type: "Microsoft.Network/routeTables", Fault: core.FaultCrash, Code: "here"}},
		Crash:  func(f core.Fault) { crashed = f.Code },
	})
	a.group()
	r, err := http.NewRequestWithContext(t.Context(), "PUT", "https://azure"+table+"?api-version=2025-05-01",
		strings.NewReader(`{"location":"eastus"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := a.Transport().RoundTrip(r)
	if err == nil {
		answer.Body.Close()
	}
	if err == nil || crashed != "here" {
		t.Errorf("crash: %q, %v", crashed, err)
	}
	a.must("GET", table, "")
}

func TestBadFaultRules(t *testing.T) {
	for rules, want := range map[string]string{
		`{"faults":[{"fault":"explode"}]}`: `rule 1: fault "explode": want error, operation, lost, ` +
			`stale, crash, absent, overlap, drop, answer or unconditional`,
		`{"faults":[{"fault":"drop"}]}`:                              `fault "drop" with path ""`,
		`{"faults":[{"fault":"lost","value":1}]}`:                    `fault "lost" with value 1`,
		`{"faults":[{"fault":"error","path":"tags.a"}]}`:             `fault "error" with path "tags.a"`,
		`{"faults":[{"fault":"lost"},{"fault":"error","methd":""}]}`: `unknown field "methd"`,
		`{"faults":[{"fault":"error","method":"FETCH"}]}`:            `method "FETCH": want GET`,
		`{"faults":[{"fault":"error","probability":2}]}`:             `probability 2: want 0 to 1`,
		`{"faults":[{"fault":"error","status":200}]}`:                `status 200: want 400 to 599`,
		`{"faults":[{"fault":"error","name":"["}]}`:                  `name "[": syntax error in pattern`,
		`{"faults":[]} {}`:                                           `more after the end`,
	} {
		if _, err := core.ParseFaults([]byte(rules)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rules, err, want)
		}
	}
}
