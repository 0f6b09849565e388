package compute

import (
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
)

// showHost shows the state of a dedicated host, if a request asks for it.
func showHost(c *behaviour.Call, view behaviour.Object) {
	if c.Expands("instanceView") {
		behaviour.Set(view, "properties.instanceView", behaviour.Object{
			"statuses": vm.Statuses(schema.State(view), vm.Running, behaviour.Text(view, "properties.timeCreated"))})
	}
}

const reservationType = schema.Namespace + "capacityReservationGroups/capacityReservations"

// showReservation shows the state of a capacity reservation and what uses it, if a request asks for it.
func showReservation(c *behaviour.Call, view behaviour.Object) {
	if c.Expands("instanceView") {
		behaviour.Set(view, "properties.instanceView", reservationView(c, azure.ID(behaviour.Text(view, "id")), view))
	}
}

// showReservations shows the reservations of a group, and their states if a request asks for them.
func showReservations(c *behaviour.Call, view behaviour.Object) {
	group := azure.ID(behaviour.Text(view, "id"))
	refs, states := []any{}, []any{}
	for id, doc := range c.List(group, reservationType) {
		refs = append(refs, behaviour.Ref(id))
		state := reservationView(c, id, doc)
		state["name"] = id.Name()
		states = append(states, state)
	}
	if len(refs) == 0 {
		return
	}
	behaviour.Set(view, "properties.capacityReservations", refs)
	if !c.Expands("instanceView") {
		return
	}
	behaviour.Set(view, "properties.instanceView.capacityReservations", states)
	if shared := behaviour.Array(view, "properties.sharingProfile.subscriptionIds"); len(shared) > 0 {
		behaviour.Set(view, "properties.instanceView.sharedSubscriptionIds", behaviour.Clone(shared))
	}
}

// reservationView is the state of a reservation: its capacity, and the running machines of its size that refer to its group.
func reservationView(c *behaviour.Call, id azure.ID, reservation behaviour.Object) behaviour.Object {
	capacity, _ := behaviour.Int(reservation, "sku.capacity")
	running := []any{}
	for machine, doc := range c.List(azure.SubscriptionID(id.Subscription()), schema.Namespace+"virtualMachines") {
		group := behaviour.RefID(doc, "properties.capacityReservation.capacityReservationGroup")
		if group.Equal(id.Parent()) && vm.PowerOf(doc) == vm.Running &&
			strings.EqualFold(behaviour.Text(doc, "properties.hardwareProfile.vmSize"), behaviour.Text(reservation, "sku.name")) {
			running = append(running, behaviour.Ref(machine))
		}
	}
	return behaviour.Object{
		"statuses":        vm.Statuses(schema.State(reservation), "", behaviour.Text(reservation, "properties.timeCreated")),
		"utilizationInfo": behaviour.Object{"currentCapacity": capacity, "virtualMachinesAllocated": running}}
}
