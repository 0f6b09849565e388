package access_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/component/access"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/rights"
	"kaz/internal/testkit"
)

// places has the security group and the route table in groups of their own.
func places() map[rights.Scope]access.Place {
	table := group.Resource("Microsoft.Network/routeTables", "rt")
	return map[rights.Scope]access.Place{
		rights.Machines: {Group: group}, rights.LoadBalancers: {Group: group}, rights.PublicIPs: {Group: group},
		rights.RouteTable: {Group: group, Resource: table},
	}
}

func wanted() []rights.Need {
	return rights.Needed(rights.Check, rights.Nodes, rights.Services, rights.Routes)
}

// actionsOf returns the actions of needs, as in a role definition.
func actionsOf(needs []rights.Need, without ...string) []string {
	var all []string
	for _, n := range needs {
		if !slices.Contains(without, n.Action) && !slices.Contains(all, n.Action) {
			all = append(all, n.Action)
		}
	}
	return all
}

func principal(t *testing.T, w *testkit.SignIn) *access.Clients {
	t.Helper()
	d, err := open(t, w, settings(t, keys{"aadClientId": clientID, "aadClientSecret": secret}))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func lacking(f access.Findings) []string {
	var all []string
	for _, l := range f.Missing {
		all = append(all, l.Action)
	}
	slices.Sort(all)
	return all
}

// TestRights checks that nothing is missing with exactly the rights of the table, with one request
// for each group. Each removed action is reported missing.
func TestRights(t *testing.T) {
	w := newWorld(t)
	w.Grant(t, objectID, group, actionsOf(wanted())...)
	d := principal(t, w)
	if f := d.Rights(t.Context(), wanted(), places()); f.Missing != nil || f.Unknown != nil || f.Hopeless != nil {
		t.Errorf("with all rights: %+v", f)
	}
	if asked := w.Seen("/permissions"); len(asked) != 1 {
		t.Errorf("azure was asked %d times", len(asked))
	}
	for _, action := range actionsOf(wanted(), "Microsoft.Network/locations/usages/read") { // subscriptions are not checked
		t.Run(strings.ReplaceAll(action, "/", " "), func(t *testing.T) {
			w := newWorld(t)
			w.Grant(t, objectID, group, actionsOf(wanted(), action)...)
			f := principal(t, w).Rights(t.Context(), wanted(), places())
			if strings.HasSuffix(action, "permissions/read") {
				if len(f.Unknown) != 1 || !f.Unknown[0].At.Equal(group) || azure.KindOf(f.Unknown[0].Err) != azure.Denied ||
					f.Hopeless != nil {
					t.Errorf("%+v", f)
				}
				return
			}
			if got := lacking(f); !slices.Equal(got, []string{action}) || f.Hopeless != nil {
				t.Fatalf("missing: %q, %v", got, f.Hopeless)
			}
			if text := f.Missing[0].String(); !strings.Contains(text, action) || !strings.Contains(text, string(group)) ||
				!strings.Contains(text, f.Missing[0].Why) {
				t.Errorf("%q", text)
			}
		})
	}
}

// TestRightsOfOneResource assigns a role at the route table only.
func TestRightsOfOneResource(t *testing.T) {
	w := newWorld(t)
	routes := rights.Needed(rights.Routes)
	w.Grant(t, objectID, group, actionsOf(wanted(), "Microsoft.Network/routeTables/read", "Microsoft.Network/routeTables/write")...)
	d := principal(t, w)
	f := d.Rights(t.Context(), wanted(), places())
	if got := lacking(f); !slices.Equal(got, []string{"Microsoft.Network/routeTables/read", "Microsoft.Network/routeTables/write"}) {
		t.Errorf("without it: %q", got)
	}
	table := places()[rights.RouteTable].Resource
	w.Put(t, table, map[string]any{"location": "eastus"})
	w.Grant(t, objectID, table, actionsOf(routes)...)
	if f := d.Rights(t.Context(), wanted(), places()); f.Missing != nil {
		t.Errorf("with it: %+v", f.Missing)
	}
}

// TestHopeless checks that the reason is reported if nothing can work.
func TestHopeless(t *testing.T) {
	for name, c := range map[string]struct {
		actions []string
		change  func(*testkit.SignIn)
		keys    keys
		says    []string
	}{
		"no role at all": {nil, nil, nil, []string{"AuthorizationFailed", "Microsoft.Compute/virtualMachineScaleSets/read"}},
		"a role for something else": {[]string{"Microsoft.Authorization/permissions/read", "Microsoft.Storage/*"}, nil, nil,
			[]string{"none of the needed rights", string(group)}},
		"a subscription of another tenant": {[]string{"*"}, nil, keys{"subscriptionId": networkSub},
			[]string{"InvalidAuthenticationTokenTenant", otherID}},
		"no such subscription": {[]string{"*"}, nil, keys{"subscriptionId": "00000000-0000-0000-0000-0000000000ff"},
			[]string{"SubscriptionNotFound"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.actions != nil {
				w.Grant(t, objectID, group, c.actions...)
			}
			all := keys{"aadClientId": clientID, "aadClientSecret": secret}
			where := places()
			if sub, ok := c.keys["subscriptionId"].(string); ok {
				all["subscriptionId"] = sub
				where = map[rights.Scope]access.Place{rights.Machines: {Group: azure.GroupID(sub, "rg")}}
			}
			d, err := open(t, w, settings(t, all))
			if err != nil {
				t.Fatal(err)
			}
			f := d.Rights(t.Context(), wanted(), where)
			if f.Hopeless == nil {
				t.Fatalf("there is hope: %+v", f)
			}
			for _, words := range c.says {
				if !strings.Contains(f.Hopeless.Error(), words) {
					t.Errorf("%q does not say %q", f.Hopeless, words)
				}
			}
		})
	}
}

// TestUnknownRights checks that the program continues if Azure does not answer.
func TestUnknownRights(t *testing.T) {
	w := newWorld(t)
	w.Grant(t, objectID, group, "*")
	if err := w.SetFaults([]core.Fault{{Type: "Microsoft.Authorization/permissions", Fault: core.FaultError,
		Status: http.StatusForbidden, Code: "RequestDisallowedByPolicy"}}); err != nil {
		t.Fatal(err)
	}
	f := principal(t, w).Rights(t.Context(), wanted(), places())
	if len(f.Unknown) != 1 || f.Hopeless != nil || f.Missing != nil {
		t.Errorf("%+v", f)
	}
}

// TestTwoTenants checks that requests for the network use the identity in its tenant, and that
// requests that refer to the network carry its token.
func TestTwoTenants(t *testing.T) {
	w := newWorld(t)
	w.Grant(t, objectID, group, "*")
	w.Grant(t, objectID, networkGroup, "*")
	c := settings(t, keys{
		"aadClientId": clientID, "aadClientSecret": secret,
		"networkResourceTenantID": otherID, "networkResourceSubscriptionID": networkSub,
	})
	d, err := open(t, w, c)
	if err != nil {
		t.Fatal(err)
	}
	table := networkGroup.Resource("Microsoft.Network/routeTables", "t")
	if _, err := azure.ByVerb(d).Put(t.Context(), azure.Write{ID: table, Body: azure.Document(`{"location":"eastus"}`)}); err != nil {
		t.Fatal(err)
	}
	if list, err := d.Fresh().List(t.Context(), azure.Query{Scope: networkGroup, Type: "Microsoft.Network/routeTables"}); err != nil ||
		len(list) != 1 {
		t.Errorf("%s, %v", list, err)
	}
	// A network in the cluster's own subscription. Its subnet refers to the other one.
	vnet := group.Resource("Microsoft.Network/virtualNetworks", "v")
	body := azure.Document(`{"location":"eastus","properties":{"addressSpace":{"addressPrefixes":["10.0.0.0/16"]},"subnets":[{"name":"s","properties":{"addressPrefix":"10.0.0.0/24","routeTable":{"id":"` + string(table) + `"}}}]}}`)
	if _, err := azure.ByVerb(d).Put(t.Context(), azure.Write{ID: vnet, Body: body}); err != nil {
		t.Error(err)
	}
	for _, r := range w.Seen("/subscriptions/" + networkSub) {
		if r.Header.Get("x-ms-authorization-auxiliary") != "" {
			t.Errorf("%s %s brings two tokens", r.Method, r.URL.Path)
		}
	}
	for _, r := range w.Seen(string(vnet)) {
		if !strings.HasPrefix(r.Header.Get("x-ms-authorization-auxiliary"), "Bearer ") {
			t.Errorf("%s %s brings one token", r.Method, r.URL.Path)
		}
	}
	// A single client cannot do that.
	one, err := open(t, w,
		settings(t, keys{"aadClientId": clientID, "aadClientSecret": secret, "networkResourceSubscriptionID": networkSub}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = one.Fresh().Get(t.Context(), table)
	if e, ok := errors.AsType[*azure.Error](err); !ok || e.Code != "InvalidAuthenticationTokenTenant" {
		t.Errorf("with one tenant's token: %v", err)
	}
	if _, err := azure.ByVerb(one).Put(t.Context(), azure.Write{ID: vnet, Body: body}); azure.KindOf(err) != azure.Denied {
		t.Errorf("a link with one tenant's token: %v", err)
	}
}
