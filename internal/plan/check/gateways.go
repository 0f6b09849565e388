package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan/gateway/health"
	"kaz/internal/plan/gateway/live"
)

// GatewayIDs returns the application gateways that the flags of the application-gateway-controller name. It is empty if no such
// controller runs in a pod.
func (f *Facts) GatewayIDs() (ids []azure.ID) {
	a, runs := f.Arguments[gatewayController]
	if !runs {
		return nil
	}
	first := azure.ID(a.Last("gateway-id"))
	if name := a.Last("gateway"); first == "" && name != "" {
		first = azure.GroupID(cmp.Or(a.Last("gateway-subscription"), f.Group.Subscription()),
			cmp.Or(a.Last("gateway-resource-group"), f.Group.Group())).Resource(network.ApplicationGateways, name)
	}
	for _, id := range append([]azure.ID{first}, azureIDs(a.List("further-gateway-ids"))...) {
		if id != "" && !slices.ContainsFunc(ids, id.Equal) {
			ids = append(ids, id)
		}
	}
	return ids
}

func azureIDs(texts []string) []azure.ID {
	ids := make([]azure.ID, len(texts))
	for i, t := range texts {
		ids[i] = azure.ID(t)
	}
	return ids
}

func gateways(f *Facts, l *list) {
	if _, runs := f.Arguments[gatewayController]; !runs {
		l.add("all", OK, "no "+gatewayController+" runs in a pod, so there are none to compare", "")
		return
	}
	if len(f.Gateways) == 0 {
		l.add("flags", Unknown, "the "+gatewayController+" has neither --gateway-id nor --gateway among its arguments",
			"kubectl -n kube-system logs -l app="+gatewayController)
	}
	for _, g := range f.Gateways {
		gateway(g, l)
	}
}

func gateway(g Gateway, l *list) {
	name := g.ID.Name()
	if g.Absent {
		l.add(name, Problem, "it is not in Azure: "+string(g.ID), "correct --gateway-id or --gateway of the "+gatewayController)
		return
	}
	show := "az network application-gateway show --ids " + string(g.ID)
	p := g.Doc.Properties
	if (live.Gateway{Resource: g.Doc}).IsStopped() {
		l.add(name, Problem, "it is "+p.OperationalState+", so it serves nothing, and the controller writes nothing",
			"az network application-gateway start --ids "+string(g.ID))
		return
	}
	if why, state := unfinished(p.ProvisioningState); why != "" {
		l.add(name, state, why, show)
	}
	if g.HealthFault != "" {
		l.add(name, Unknown, "the health of its backends cannot be read: "+g.HealthFault,
			"grant Microsoft.Network/applicationGateways/backendhealth/action, or "+
				"az network application-gateway show-backend-health --ids "+string(g.ID))
	}
	for _, pool := range health.Dead(g.Health) {
		said := ""
		if pool.Log != "" {
			said = ": " + strings.Join(strings.Fields(pool.Log), " ")
		}
		l.add(name+"/"+pool.Name, Problem, fmt.Sprintf("none of its %d backends is healthy, so requests get 502%s", pool.Backends, said),
			"kaz explain ingress NAMESPACE/NAME of an Ingress that uses it")
	}
}
