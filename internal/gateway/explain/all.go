package explain

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/plan/gateway/gatewayapi"
	"kaz/internal/plan/gateway/ingress"
)

// Object is what the controller would write for one object.
type Object struct {
	// Key is the kind, namespace and name, several if objects share what is written.
	Key string
	// Writes say what would be written, without values: certificates are among them.
	Writes []string
	// Refused says why the controller would refuse the object, "" if it would not.
	Refused string
}

// ExplainAll decides about all objects together, as the controller does after a restart. An object without writes agrees with what is
// there. What the controller would take away is at the application gateway's name.
func (f *Facts) ExplainAll(now time.Time) ([]Object, error) {
	d := f.decision(now)
	if err := d.decide(); err != nil {
		return nil, err
	}
	all := map[string]*Object{}
	at := func(key string) *Object {
		if all[key] == nil {
			all[key] = &Object{Key: key}
		}
		return all[key]
	}
	d.statuses(at)
	for _, p := range d.decided.Problems { // one with a warning can be served without a part
		if _, served := d.decided.Served[p.Object]; !p.Warning || !served {
			at(p.Object).Refused = p.Message
		}
	}
	gate := "application gateway " + f.Gateway.Name()
	for _, c := range d.childChanges() {
		key := strings.Join(d.decided.Objects[c.name], " and ")
		if key == "" {
			key = gate
		}
		o := at(key)
		o.Writes = append(o.Writes, c.text)
	}
	if d.decided.Hold != nil {
		at(gate).Refused = "nothing is written: " + d.decided.Hold.Error()
	}
	var objects []Object
	for _, key := range slices.Sorted(maps.Keys(all)) {
		objects = append(objects, *all[key])
	}
	return objects, nil
}

// statuses adds what would be written to the statuses of objects.
func (d *decision) statuses(at func(string) *Object) {
	for _, i := range d.Ingresses {
		o := at(Subject{ingress.Kind, i.Namespace, i.Name}.key())
		if address, served := d.addressOf(o.Key); served && !hasAddress(i, address) {
			o.Writes = append(o.Writes, "status.loadBalancer.ingress: "+address)
		}
	}
	for _, g := range d.API.Gateways {
		o := at(Subject{gatewayapi.KindGateway, g.Namespace, g.Name}.key())
		want := d.decided.API.Gateways[gatewayapi.KeyOf(g)]
		o.conditions("", g.Status.Conditions, want.Conditions)
		for _, l := range want.Listeners {
			var have []metav1.Condition
			for _, h := range g.Status.Listeners {
				if h.Name == l.Name {
					have = h.Conditions
				}
			}
			o.conditions("listeners["+string(l.Name)+"].", have, l.Conditions)
		}
	}
	for _, r := range d.API.Routes {
		want := d.decided.API.Routes[gatewayapi.RouteKey(r)]
		if len(want) == 0 {
			continue // it is of another controller
		}
		o := at(Subject{gatewayapi.RouteKind(r), r.GetNamespace(), r.GetName()}.key())
		for _, p := range parentsOf(r, want) {
			o.differing("parents["+p.Name+"].", p.Conditions)
		}
	}
}

func (o *Object) conditions(where string, have, want []metav1.Condition) {
	o.differing(where, conditions(have, want))
}

func (o *Object) differing(where string, all []Condition) {
	for _, c := range all {
		if c.InStatus != "" {
			write := fmt.Sprintf("status.%sconditions[%s]: %s (%s), now %s", where, c.Type, c.Status, c.Reason, c.InStatus)
			o.Writes = append(o.Writes, write)
		}
	}
}

// addressOf returns the address that an object is served at.
func (d *decision) addressOf(key string) (address string, served bool) {
	private, served := d.decided.Served[key]
	if private {
		return d.PrivateIP, served
	}
	return d.PublicIP, served
}

func hasAddress(i *networking.Ingress, address string) bool {
	have := i.Status.LoadBalancer.Ingress
	return len(have) == 1 && have[0].IP == address
}

// childChange is a change of a child of the application gateway.
type childChange struct {
	name string // in lower case, "" for a change elsewhere
	text string
}

// child matches the path of a child and what is below it.
var child = regexp.MustCompile(`^properties\.(\w+)\[([^\]]+)\](.*)$`)

// childChanges returns the changes at the application gateway, one for each child.
func (d *decision) childChanges() (all []childChange) {
	for _, c := range d.steps {
		one := childChange{text: "change " + c.Path}
		if found := child.FindStringSubmatch(c.Path); found != nil {
			list, name, below := found[1], found[2], found[3]
			verb := "change"
			switch {
			case below == "" && c.From == "":
				verb = "create"
			case below == "" && c.To == "":
				verb = "delete"
			}
			one = childChange{strings.ToLower(name), fmt.Sprintf("%s %s/%s", verb, list, name)}
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}
