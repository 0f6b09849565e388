package compute

import (
	"iter"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/compute/schema"
	"kaz/internal/localazure/behaviour/compute/vm"
)

// both shows what two functions show.
func both(first, second func(*behaviour.Call, behaviour.Object)) func(*behaviour.Call, behaviour.Object) {
	return func(c *behaviour.Call, view behaviour.Object) {
		first(c, view)
		second(c, view)
	}
}

// showHost shows the state of a dedicated host, if a request asks for it.
func showHost(c *behaviour.Call, view behaviour.Object) {
	if c.Expands("instanceView") {
		behaviour.Set(view, "properties.instanceView", behaviour.Object{
			"statuses": vm.Statuses(schema.State(view), vm.Running, behaviour.Text(view, "properties.timeCreated"))})
	}
}

const reservationType = schema.Namespace + "capacityReservationGroups/capacityReservations"

// showReservation shows what a capacity reservation is for, and its state if a request asks for it.
func showReservation(c *behaviour.Call, view behaviour.Object) {
	id := azure.ID(behaviour.Text(view, "id"))
	machines := []any{}
	for machine := range reservers(c, id, view) {
		machines = append(machines, behaviour.Ref(machine))
	}
	behaviour.Set(view, "properties.virtualMachinesAssociated", machines)
	if c.Expands("instanceView") {
		behaviour.Set(view, "properties.instanceView", reservationView(c, id, view))
	}
}

// reservers are the machines that a reservation is for: those of its size that refer to its group.
func reservers(c *behaviour.Call, id azure.ID, reservation behaviour.Object) iter.Seq2[azure.ID, behaviour.Object] {
	return func(yield func(azure.ID, behaviour.Object) bool) {
		for machine, doc := range c.List(azure.SubscriptionID(id.Subscription()), schema.Namespace+"virtualMachines") {
			if behaviour.RefID(doc, "properties.capacityReservation.capacityReservationGroup").Equal(id.Parent()) &&
				strings.EqualFold(behaviour.Text(doc, "properties.hardwareProfile.vmSize"), behaviour.Text(reservation, "sku.name")) &&
				!yield(machine, doc) {
				return
			}
		}
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

// reservationView is the state of a reservation: its capacity, and the running machines that it is for.
func reservationView(c *behaviour.Call, id azure.ID, reservation behaviour.Object) behaviour.Object {
	capacity, _ := behaviour.Int(reservation, "sku.capacity")
	running := []any{}
	for machine, doc := range reservers(c, id, reservation) {
		if vm.PowerOf(doc) == vm.Running {
			running = append(running, behaviour.Ref(machine))
		}
	}
	return behaviour.Object{
		"statuses":        vm.Statuses(schema.State(reservation), "", behaviour.Text(reservation, "properties.timeCreated")),
		"utilizationInfo": behaviour.Object{"currentCapacity": capacity, "virtualMachinesAllocated": running}}
}
