package dns_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"kaz/internal/plan/records"
)

// externalDNS plans as ExternalDNS does with its TXT registry, as far as these tests need it.
type externalDNS struct {
	w     *zonedAzure
	owner string
	want  []records.Endpoint
}

func (x *externalDNS) text() string {
	return `"heritage=external-dns,external-dns/owner=` + x.owner + `,external-dns/resource=ingress/default/web"`
}

func txtName(e records.Endpoint) string { return strings.ToLower(e.Type) + "-" + e.Name }

func (x *externalDNS) registry(e records.Endpoint) records.Endpoint {
	return records.Endpoint{
		Name: txtName(e), Type: "TXT", Targets: []string{x.text()}, Labels: map[string]string{"ownedRecord": e.Name},
		SetIdentifier: e.SetIdentifier, ProviderSpecific: e.ProviderSpecific,
	}
}

func key(e records.Endpoint) string { return e.Name + " " + e.Type + " " + e.SetIdentifier }

func txtKey(e records.Endpoint) string { return txtName(e) + " " + e.SetIdentifier }

// loop is one round. It returns the status of the first answer that is not as wanted, 0 if nothing was to change, and 204 if changes were made.
func (x *externalDNS) loop() int {
	c, status := x.look()
	if status != http.StatusOK {
		return status
	}
	if len(c.Create)+len(c.UpdateNew)+len(c.Delete) == 0 {
		return 0
	}
	return x.w.apply(c)
}

// look returns what is to be changed, and the status of the first answer that is not as wanted.
func (x *externalDNS) look() (c records.Changes, status int) {
	answer := x.w.call(http.MethodGet, "/records", nil)
	if answer.Code != http.StatusOK {
		return c, answer.Code
	}
	var all []records.Endpoint
	if err := json.Unmarshal(answer.Body.Bytes(), &all); err != nil {
		x.w.t.Fatal(err)
	}
	answer = x.w.call(http.MethodPost, "/adjustendpoints", x.want)
	if answer.Code != http.StatusOK {
		return c, answer.Code
	}
	var adjusted []records.Endpoint
	if err := json.Unmarshal(answer.Body.Bytes(), &adjusted); err != nil {
		x.w.t.Fatal(err)
	}
	return x.plan(all, adjusted), http.StatusOK
}

func (x *externalDNS) plan(all, adjusted []records.Endpoint) (c records.Changes) {
	current, taken, wanted := map[string]records.Endpoint{}, map[string]bool{}, map[string]records.Endpoint{}
	texts := map[string]string{}
	for _, e := range all {
		if e.Type == "TXT" {
			texts[e.Name+" "+e.SetIdentifier] = e.Targets[0]
		}
	}
	for _, e := range all {
		switch {
		case texts[txtKey(e)] == x.text():
			e.Labels = map[string]string{"owner": x.owner}
			current[key(e)] = e
		case e.Type != "TXT":
			taken[e.Name+" "+e.SetIdentifier] = true
		}
	}
	add := func(list *[]records.Endpoint, e records.Endpoint, text bool) {
		*list = append(*list, e)
		if text {
			*list = append(*list, x.registry(e))
		}
	}
	for _, e := range adjusted {
		e.Labels = map[string]string{"owner": x.owner, "resource": "ingress/default/web"}
		wanted[key(e)] = e
		old, ok := current[key(e)]
		switch {
		case !ok && !taken[e.Name+" "+e.SetIdentifier]:
			add(&c.Create, e, texts[txtKey(e)] == "")
		case ok && differ(old, e):
			add(&c.UpdateOld, old, true)
			add(&c.UpdateNew, e, true)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(current)) {
		if _, ok := wanted[k]; !ok {
			add(&c.Delete, current[k], true)
		}
	}
	return c
}

// differ compares as ExternalDNS does.
func differ(old, e records.Endpoint) bool {
	properties := func(e records.Endpoint) map[string]string {
		all := map[string]string{}
		for _, p := range e.ProviderSpecific {
			all[p.Name] = p.Value
		}
		return all
	}
	return !slices.Equal(slices.Sorted(slices.Values(old.Targets)), slices.Sorted(slices.Values(e.Targets))) ||
		e.TTL != 0 && e.TTL != old.TTL || !maps.Equal(properties(old), properties(e))
}
