package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// admission is a ValidatingAdmissionPolicy.
type admission struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		FailurePolicy    string
		MatchConstraints struct {
			ResourceRules []struct{ Operations, Resources []string }
		}
		MatchConditions []struct{ Expression string }
		Validations     []struct{ Expression string }
	}
}

// TestOwnNodeOnly checks that programs of nodes which may write nodes are held to their own node.
func TestOwnNodeOnly(t *testing.T) {
	for chart, c := range map[string]struct{ policy, user, off string }{
		folder:     {"cloud-node-manager-own-node", "system:serviceaccount:kube-system:cloud-node-manager", "cloudNodeManager.ownNodeOnly"},
		diskFolder: {"azuredisk-csi-azuredisk-node-own-node", "system:serviceaccount:kube-system:csi-azuredisk-node-sa", "rbac.ownNodeOnly"},
	} {
		name := func(a admission) string { return a.Kind + " " + a.Metadata.Name }
		all := objectsOf[admission](t, chart, nil, name)
		spec := all["ValidatingAdmissionPolicy "+c.policy].Spec
		if _, bound := all["ValidatingAdmissionPolicyBinding "+c.policy]; !bound || spec.FailurePolicy != "Fail" {
			t.Fatalf("%s: no policy %s that is bound", chart, c.policy)
		}
		rule := spec.MatchConstraints.ResourceRules[0]
		if !slices.Equal(rule.Resources, []string{"nodes", "nodes/status"}) || !slices.Contains(rule.Operations, "UPDATE") ||
			!strings.Contains(spec.MatchConditions[0].Expression, c.user) ||
			!strings.Contains(spec.Validations[0].Expression, "authentication.kubernetes.io/node-name") {
			t.Errorf("%s: %+v", chart, spec)
		}
		if _, there := objectsOf[admission](t, chart, set(c.off, false), name)["ValidatingAdmissionPolicy "+c.policy]; there {
			t.Errorf("%s: %s has no effect", chart, c.off)
		}
	}
}

// TestNodeApproval checks that the cloud-controller-manager approves requests of kubelets alone, and only if it is asked to.
func TestNodeApproval(t *testing.T) {
	type role struct {
		Kind     string
		Metadata struct{ Name string }
		Rules    []struct{ APIGroups, Resources, ResourceNames, Verbs []string }
	}
	name := func(r role) string { return r.Kind + " " + r.Metadata.Name }
	const of = " system:cloud-controller-manager:node-approval"
	all := objectsOf[role](t, folder, set("cloudControllerManager.approveAttestedNodes", true), name)
	var got []string
	for _, r := range all["ClusterRole"+of].Rules {
		got = append(got, fmt.Sprint(r.APIGroups, r.Resources, r.ResourceNames, r.Verbs))
	}
	want := []string{
		"[certificates.k8s.io] [certificatesigningrequests] [] [list watch]",
		"[certificates.k8s.io] [certificatesigningrequests/approval] [] [update]",
		"[certificates.k8s.io] [signers] [kubernetes.io/kube-apiserver-client-kubelet] [approve]",
		"[rbac.authorization.k8s.io] [clusterrolebindings] [kubeadm:node-autoapprove-bootstrap] [delete]",
	}
	if _, bound := all["ClusterRoleBinding"+of]; !bound || !slices.Equal(got, want) {
		t.Errorf("bound %v: %q, want %q", bound, got, want)
	}
	for _, off := range []any{"", false, "false"} {
		all := objectsOf[role](t, folder, set("cloudControllerManager.approveAttestedNodes", off), name)
		if _, there := all["ClusterRole"+of]; there {
			t.Errorf("with %q there is the role", off)
		}
	}
}

// TestNodeSecretNamespaces checks that with a list of namespaces the driver of a node reads no other Secrets.
func TestNodeSecretNamespaces(t *testing.T) {
	all := objectsOf[admission](t, shareFolder, set("rbac.nodeSecretNamespaces", []any{"apps", "shop"}),
		func(a admission) string { return a.Kind + " " + a.Metadata.Namespace + "/" + a.Metadata.Name })
	if _, there := all["ClusterRole /azurefile-csi-azurefile-node-role"]; there {
		t.Error("the driver of a node may read the Secrets of all namespaces")
	}
	for _, namespace := range []string{"apps", "shop"} {
		for _, kind := range []string{"Role ", "RoleBinding "} {
			if _, there := all[kind+namespace+"/azurefile-csi-azurefile-node-secrets"]; !there {
				t.Errorf("there is no %s in namespace %s", kind, namespace)
			}
		}
	}
}

// TestNetworkPolicies checks that each Deployment on the pod network has a NetworkPolicy, and that it can be left out.
func TestNetworkPolicies(t *testing.T) {
	pods := func(values map[string]any) map[string]any {
		values["controller"] = map[string]any{"hostNetwork": false}
		return values
	}
	for chart, c := range map[string]struct {
		values map[string]any
		want   []string
	}{
		diskFolder:       {pods(everyDisk()), []string{"csi-azuredisk-controller", "csi-snapshot-controller"}},
		shareFolder:      {pods(everyShare()), []string{"csi-azurefile-controller", "csi-snapshot-controller"}},
		autoscalerFolder: {map[string]any{}, []string{"cluster-autoscaler-provider"}},
		gatewayFolder:    {named(), []string{"application-gateway-controller"}},
		shadowFolder:     {map[string]any{}, []string{"kaz-shadow"}},
	} {
		for _, enabled := range []bool{true, false} {
			c.values["networkPolicy"] = map[string]any{"enabled": enabled}
			all := objectsOf[object](t, chart, c.values, func(o object) string { return o.Kind + " " + o.Metadata.Name })
			for _, name := range c.want {
				if _, there := all["NetworkPolicy "+name]; there != enabled {
					t.Errorf("%s, enabled %t: NetworkPolicy %s is there: %t", chart, enabled, name, there)
				}
			}
		}
	}
}
