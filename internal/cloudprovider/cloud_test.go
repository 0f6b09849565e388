package cloudprovider_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	framework "k8s.io/cloud-provider"
	"k8s.io/klog/v2"

	"kaz/internal/cloudprovider"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/nodes"
	"kaz/internal/testkit"
)

func TestMain(m *testing.M) {
	quiet := slog.New(slog.DiscardHandler)
	slog.SetDefault(quiet)
	klog.SetSlogLogger(quiet)       // set before anything runs, because it is a global of klog
	utilruntime.ErrorHandlers = nil // these handlers sleep, and their clock is not that of a bubble
	watch.DefaultChanSize = 1 << 14 // the fake API server panics if a watcher falls behind
	goleak.VerifyTestMain(m)
}

// provider is a cloud provider on a local Azure with machines.
type provider struct {
	*testkit.Azure
	cloud *cloudprovider.Cloud
}

func newProvider(t *testing.T, o core.Options, count int) *provider {
	t.Helper()
	w := &provider{Azure: testkit.NewAzure(t, o, count)}
	w.cloud = cloudprovider.New(cloudprovider.Config{
		Subscription: testkit.Subscription, ResourceGroup: testkit.ResourceGroup, Location: testkit.Location,
	}, w.Client)
	t.Cleanup(w.cloud.Close)
	return w
}

func TestMetadata(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 2)
		machines, _ := w.cloud.InstancesV2()
		// A kubelet registers a node without a provider id.
		got, err := machines.InstanceMetadata(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "nodes0-000001"}})
		if err != nil {
			t.Fatal(err)
		}
		id, _ := nodes.ProviderID(testkit.Nodes.Child("virtualMachines", "1"))
		if got.ProviderID != id || got.InstanceType != "Standard_D2s_v5" || got.Region != "westeurope" ||
			!strings.HasPrefix(got.Zone, "westeurope-") {
			t.Errorf("%+v", got)
		}
		var kinds []corev1.NodeAddressType
		for _, a := range got.NodeAddresses {
			kinds = append(kinds, a.Type)
		}
		if !slices.Equal(kinds, []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeHostName}) {
			t.Errorf("addresses %v", got.NodeAddresses)
		}
		_, err = machines.InstanceMetadata(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "nodes0-00zzzz"}})
		if !errors.Is(err, framework.InstanceNotFound) {
			t.Errorf("a node without a machine: %v", err)
		}
	})
}

func TestMachinesThatGoAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newProvider(t, core.Options{}, 3)
		machines, _ := w.cloud.InstancesV2()
		node := func(instance string) *corev1.Node {
			id, err := nodes.ProviderID(testkit.Nodes.Child("virtualMachines", instance))
			if err != nil {
				t.Fatal(err)
			}
			return silent(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "nodes0-00000" + instance},
				Spec: corev1.NodeSpec{ProviderID: id}})
		}
		expect := func(instance string, exists, off bool) {
			t.Helper()
			gotExists, err := machines.InstanceExists(t.Context(), node(instance))
			if err != nil || gotExists != exists {
				t.Errorf("instance %s exists: %v, %v", instance, gotExists, err)
			}
			gotOff, err := machines.InstanceShutdown(t.Context(), node(instance))
			if err != nil || gotOff != off {
				t.Errorf("instance %s is off: %v, %v", instance, gotOff, err)
			}
		}
		expect("0", true, false)
		if err := w.Client.Delete(t.Context(), testkit.Nodes.Child("virtualMachines", "0")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Client.Post(t.Context(), testkit.Nodes.Child("virtualMachines", "1"), "deallocate", nil); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second) // the framework's period
		expect("0", false, false)
		expect("1", true, true)
		expect("2", true, false)

		elsewhere := &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "aws:///eu-west-1a/i-1"}}
		if exists, err := machines.InstanceExists(t.Context(), elsewhere); err != nil || !exists {
			t.Errorf("a foreign node: %v, %v", exists, err)
		}
	})
}
