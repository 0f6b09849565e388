package app

import (
	"strings"
	"testing"
)

// TestSeveralLoadBalancersThatCannotBe checks that wrong load balancer configurations prevent the
// start and that the error names the key. It is row 102 of the load balancer scenarios.
func TestSeveralLoadBalancersThatCannotBe(t *testing.T) {
	one := object{"name": "kubernetes", "primaryVMSet": "a"}
	for name, c := range map[string]struct {
		pool    string
		several []object
		says    string
		starts  bool
	}{
		"as it should be": {"nodeIP", []object{one, {"name": "lb2", "primaryVMSet": "b"}}, "", true},
		"none of the cluster's": {"nodeIP", []object{{"name": "lb1", "primaryVMSet": "a"}},
			`one of the load balancers must have the name of the cluster, "kubernetes"`, false},
		"two of one name": {"nodeIP", []object{one, {"name": "Kubernetes", "primaryVMSet": "b"}},
			`configurations[1].name "Kubernetes": must be unique`, false},
		"two of one scale set": {"nodeIP", []object{one, {"name": "lb2", "primaryVMSet": "A"}},
			`configurations[1].primaryVMSet "A": must be unique`, false},
		"one without scale set": {"nodeIP", []object{one, {"name": "lb2"}}, "configurations[1].primaryVMSet: is required", false},
		"labels that cannot be": {"nodeIP",
			[]object{{"name": "kubernetes", "primaryVMSet": "a",
				"serviceLabelSelector": object{"matchLabels": object{"lb": "two words"}}}},
			`configurations[0].serviceLabelSelector: values[0][lb]: invalid value: "two words"`, false},
		"a key that cannot be": {"nodeIP",
			[]object{{"name": "kubernetes", "primaryVMSet": "a",
				"nodeSelector": object{"matchExpressions": []object{{"key": "a b", "operator": "Exists"}}}}},
			`configurations[0].nodeSelector: key: invalid value: "a b"`, false},
		"of namespaces": {"nodeIP",
			[]object{{"name": "kubernetes", "primaryVMSet": "a", "serviceNamespaceSelector": object{"matchLabels": object{"-": "x"}}}},
			`configurations[0].serviceNamespaceSelector: key: invalid value: "-"`, false},
		"pools of interfaces":    {"nodeIPConfiguration", []object{one}, "must be nodeIP with several load balancers", false},
		"pools of the usual way": {"", []object{one}, "must be nodeIP with several load balancers", false},
	} {
		_, err := source{cluster: "kubernetes"}.parse(azureJSON(t, object{
			"loadBalancerSku": "standard", "loadBalancerBackendPoolConfigurationType": c.pool,
			"multipleStandardLoadBalancerConfigurations": c.several,
		}))
		if c.starts != (err == nil) || err != nil && !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.says)) {
			t.Errorf("%s: %v does not say %q", name, err, c.says)
		}
	}
}
