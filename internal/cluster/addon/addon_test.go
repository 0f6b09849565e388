package addon

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"kaz/internal/cluster/definition"
)

func of(change func(*definition.Cluster)) definition.Cluster {
	var c definition.Cluster
	c.Metadata.Name = "prod"
	c.Spec.Addons = definition.Addons{Repository: "registry.example.com/kaz", Tag: "v1.2.3", Disks: true}
	c.Spec.Kubernetes.PodCIDR, c.Spec.Kubernetes.ServiceCIDR, c.Spec.Kubernetes.PodNetwork = "10.244.0.0/16", "10.0.0.0/16", "CloudRoutes"
	c.Spec.ControlPlane.Replicas = 3
	c.Spec.Network.APIServer.Port, c.Spec.Network.APIServer.Access = 6443, "Internal"
	change(&c)
	return c
}

// objects are the kinds and names of manifests, with their replicas.
func objects(t *testing.T, manifests []string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, text := range manifests {
		decoder := yaml.NewDecoder(strings.NewReader(text))
		for {
			var o struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     struct{ Replicas int }
			}
			if err := decoder.Decode(&o); err != nil {
				break
			}
			all[o.Kind+" "+o.Metadata.Name] = o.Spec.Replicas
		}
	}
	return all
}

// TestManifestsHaveTheValuesOfTheCluster checks that the manifests have the values of the cluster, and no placeholder.
func TestManifestsHaveTheValuesOfTheCluster(t *testing.T) {
	text := strings.Join(Manifests(of(func(*definition.Cluster) {})), "")
	for _, want := range []string{
		"registry.example.com/kaz/cloud-controller-manager:v1.2.3", "registry.example.com/kaz/cloud-node-manager:v1.2.3",
		"registry.example.com/kaz/azuredisk-csi-driver:v1.2.3", "--cluster-cidr=10.244.0.0/16", "--cluster-name=prod",
		"--service-cluster-ip-range=10.0.0.0/16", "--configure-cloud-routes=true", "--wait-routes=true",
		"--controllers=*,-cloud-node,-node-ipam-controller", "value: api.prod.kaz.internal", `value: "6443"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, stands := range []string{repository, tag, pods, services, cluster, server, port} {
		if strings.Contains(text, stands) {
			t.Errorf("%s stands for a value", stands)
		}
	}
}

// TestOneMember checks a control plane of one member. Each controller has one replica, and no disruption budget that would
// block the drain of the member.
func TestOneMember(t *testing.T) {
	many := objects(t, Manifests(of(func(*definition.Cluster) {})))
	one := objects(t, Manifests(of(func(c *definition.Cluster) { c.Spec.ControlPlane.Replicas = 1 })))
	for _, name := range []string{"cloud-controller-manager", "csi-azuredisk-controller"} {
		if many["Deployment "+name] != 2 || one["Deployment "+name] != 1 {
			t.Errorf("%s has %d replicas, with one member %d", name, many["Deployment "+name], one["Deployment "+name])
		}
		if _, has := many["PodDisruptionBudget "+name]; !has {
			t.Errorf("%s has no disruption budget", name)
		}
		if _, has := one["PodDisruptionBudget "+name]; has {
			t.Errorf("%s has a disruption budget with one member", name)
		}
	}
	if len(many)-len(one) != 2 {
		t.Errorf("%d objects, with one member %d", len(many), len(one))
	}
}

func TestChoices(t *testing.T) {
	if all := Manifests(of(func(c *definition.Cluster) { c.Spec.Addons.Repository = "" })); len(all) > 0 {
		t.Errorf("without images there are %d manifests", len(all))
	}
	if all := objects(t, Manifests(of(func(c *definition.Cluster) { c.Spec.Addons.Disks = false }))); all["Deployment csi-azuredisk-controller"] > 0 {
		t.Error("the disk driver is installed")
	}
	text := strings.Join(Manifests(of(func(c *definition.Cluster) { c.Spec.Kubernetes.PodNetwork = "None" })), "")
	if strings.Contains(text, routes) || strings.Contains(text, waitRoutes) {
		t.Error("a cluster with a network plugin gets routes")
	}
}
