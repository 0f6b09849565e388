package compute_test

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/core"
)

// oddValues are values that no client should send.
func oddValues() []any {
	return []any{nil, true, "", "x", -1.0, 0.5, 1e12, []any{}, []any{nil}, []any{"x"}, []any{[]any{}}, behaviour.Object{},
		behaviour.Object{"id": 7.0}, behaviour.Object{"id": "/subscriptions/s"}, behaviour.Object{"name": []any{}},
		[]any{behaviour.Object{}}}
}

// corrupt replaces a random part of a value by an odd value.
func corrupt(t *rapid.T, value any) any {
	switch v := value.(type) {
	case behaviour.Object:
		if len(v) > 0 && rapid.IntRange(0, 7).Draw(t, "deeper") > 0 {
			key := rapid.SampledFrom(slices.Sorted(maps.Keys(v))).Draw(t, "key")
			v[key] = corrupt(t, v[key])
			return v
		}
	case []any:
		if len(v) > 0 && rapid.IntRange(0, 7).Draw(t, "deeper") > 0 {
			i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
			v[i] = corrupt(t, v[i])
			return v
		}
	}
	return behaviour.Clone(rapid.SampledFrom(oddValues()).Draw(t, "value"))
}

// sample is a valid request.
type sample struct {
	method, path string
	body         behaviour.Object
}

func samples(w subscription) []sample {
	network := behaviour.At(model{}.object(), "properties.virtualMachineProfile.networkProfile")
	vmBody := behaviour.Object{}
	if err := json.Unmarshal([]byte(machineBody(nic, nil)), &vmBody); err != nil {
		w.Fatal(err)
	}
	disks := behaviour.Object{"properties": behaviour.Object{"storageProfile": behaviour.Object{"dataDisks": []any{entry(0, disk)}}}}
	full := model{capacity: 1, zones: []string{"1"}, tags: behaviour.Object{"a": "b"}, address: behaviour.Object{
		"publicIPAddressConfiguration": behaviour.Object{"name": "pub", "sku": behaviour.Object{"name": "Standard"}},
		"privateIPAddressVersion":      "IPv4",
	}}.object()
	full["identity"] = behaviour.Object{"type": "UserAssigned",
		"userAssignedIdentities": behaviour.Object{group +
			"/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i": behaviour.Object{}}}
	flex := behaviour.Clone(full)
	behaviour.Set(flex, "properties.orchestrationMode", "Flexible")
	return []sample{
		{"PUT", set, full},
		{"PUT", set + "flex", flex},
		{"PATCH", set,
			behaviour.Object{"sku": behaviour.Object{"capacity": 2.0},
				"properties": behaviour.Object{"upgradePolicy": behaviour.Object{"mode": "Automatic"}}}},
		{"PUT", first, behaviour.Object{"properties": behaviour.Object{"networkProfileConfiguration": network}}},
		{"PUT", first, behaviour.Clone(disks)},
		{"POST", set + "/delete", behaviour.Object{"instanceIds": []any{"1"}}},
		{"POST", set + "/manualupgrade", behaviour.Object{"instanceIds": []any{"0"}}},
		{"PUT", machine, vmBody},
		{"PATCH", machine, behaviour.Clone(disks)},
		{"POST", machine + "/attachDetachDataDisks", behaviour.Object{"dataDisksToAttach": []any{behaviour.Object{"diskId": disk}}}},
		{"PUT", disk, behaviour.Object{"location": "eastus", "sku": behaviour.Object{"name": "Premium_LRS"}, "properties": behaviour.Object{
			"creationData": behaviour.Object{"createOption": "Empty"}, "diskSizeGB": 8.0}}},
		{"PUT", group + "/providers/Microsoft.Compute/snapshots/s", behaviour.Object{"location": "eastus", "properties": behaviour.Object{
			"creationData": behaviour.Object{"createOption": "Copy", "sourceResourceId": disk}}}},
		{"POST", disk + "/beginGetAccess", behaviour.Object{"access": "Read", "durationInSeconds": 60.0}},
		{"PUT", group + "/providers/Microsoft.Compute/availabilitySets/a",
			behaviour.Object{"location": "eastus", "properties": behaviour.Object{"platformFaultDomainCount": 2.0}}},
		{"PUT", group + "/providers/Microsoft.Compute/sshPublicKeys/k",
			behaviour.Object{"location": "eastus", "properties": behaviour.Object{"publicKey": "ssh-rsa AAAA"}}},
	}
}

// TestOddRequestsAreRefused sends corrupt requests to one subscription. Each gets an answer as from Azure and never an
// internal error, and all resources can still be read and deleted.
func TestOddRequestsAreRefused(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newSubscription(t, core.Options{Log: slog.New(slog.DiscardHandler)})
		w.newInterface("nic")
		w.disk("data", 8, "")
		w.scaleSet(model{capacity: 1})
		for range rapid.IntRange(1, 6).Draw(r, "requests") {
			s := rapid.SampledFrom(samples(w)).Draw(r, "request")
			body := s.body
			if rapid.Bool().Draw(r, "corrupt") {
				body, _ = corrupt(r, s.body).(behaviour.Object)
			}
			got := w.do(s.method, s.path, text(body))
			if got.Status >= 500 {
				r.Fatalf("%s %s %s: %d %v", s.method, s.path, text(body), got.Status, got.Body)
			}
			if poll := got.Header.Get("Azure-AsyncOperation"); poll != "" {
				end := w.do("GET", strings.TrimPrefix(poll, "http://azure.test"), "")
				if code := behaviour.Text(end.Body, "error.code"); strings.HasPrefix(code, "Internal") {
					r.Fatalf("%s %s %s: operation ended %v", s.method, s.path, text(body), end.Body)
				}
			}
		}
		for _, list := range []string{"virtualMachineScaleSets", "virtualMachines?$expand=instanceView", "disks", "snapshots",
			"availabilitySets"} {
			for _, o := range w.list(group + "/providers/Microsoft.Compute/" + list) {
				w.must("GET", behaviour.Text(o, "id"), "")
			}
		}
		w.list(set + "/virtualMachines?$expand=instanceView")
		w.get(set + "/instanceView")
		w.must("DELETE", group, "")
		w.Look(func(subscription behaviour.World) {
			for id := range subscription.List(azure.SubscriptionID(core.DefaultSubscription), "Microsoft.Compute/disks") {
				r.Fatalf("%s outlived its group", id)
			}
		})
	})
}
