package service

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/plan"
	"kaz/internal/reconcile"
)

// tellUpgrades says which public IPs got the SKU of the load balancer. Somebody may have made
// them, and does not expect that; whether all else succeeded is no matter.
func (b *balancers) tellUpgrades(batch []request, reports []reconcile.Report) {
	for _, report := range reports {
		for _, res := range report.Results {
			old, changed := upgraded(res.Step)
			if !changed || res.Err != nil {
				continue
			}
			for _, r := range batch {
				if !r.sweeps && slices.Contains(res.Step.For, r.service.Key()) {
					b.events.Event(r.service.Service, corev1.EventTypeWarning, reasonUpgraded,
						fmt.Sprintf("Public IP %s had the SKU %s, which Azure has retired: its SKU is Standard now, as that of the load balancer", res.Step.ID.Name(), old))
				}
			}
		}
	}
}

// upgraded is the SKU that a public IP had before a step that changes it.
func upgraded(s plan.Step) (old string, changed bool) {
	i := slices.IndexFunc(s.Changes, func(c azure.Change) bool { return c.Path == "sku.name" })
	if s.Op != plan.Update || !sameType(s.ID, network.PublicIPAddresses) || i < 0 {
		return "", false
	}
	err := json.Unmarshal([]byte(s.Changes[i].From), &old)
	return old, err == nil
}
