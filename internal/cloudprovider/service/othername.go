package service

import (
	"fmt"

	"kaz/internal/plan/loadbalancer"
)

// misnamed is why nothing is done for a cluster that is not told its own name: docs/decisions/cluster-name.md.
type misnamed struct {
	told string
	loadbalancer.OtherName
}

func (m *misnamed) Error() string {
	more := " was"
	switch {
	case m.Addresses == 2:
		more = " and 1 other were"
	case m.Addresses > 2:
		more = fmt.Sprintf(" and %d others were", m.Addresses-1)
	}
	return fmt.Sprintf("--cluster-name %[1]q is not the name of this cluster: public IP %[2]s (%[3]s) of %[4]s%[5]s made under the name %[6]q, and under another one each would get a new address; "+
		"nothing is changed in Azure. To do: set --cluster-name=%[6]s; or, if the name and the addresses shall change, set the tag k8s-azure-cluster-name of public IPs that have %[6]q there to %[1]q first",
		m.told, m.PublicIP.Name(), m.Address, m.Service, more, m.Name)
}

// checkName refuses a cluster's name where its Services have addresses that were made under
// another one. What is in Azure tells it until something is made under the right one, so it is
// not asked again.
func (t *target) checkName(in loadbalancer.Input) error {
	if t.rightName != nil && t.rightName.Load() {
		return nil
	}
	other, found, err := loadbalancer.FindOtherName(in)
	if err != nil {
		return err
	}
	if found {
		return &misnamed{t.Config.ClusterName, other}
	}
	if t.rightName != nil {
		t.rightName.Store(true)
	}
	return nil
}
