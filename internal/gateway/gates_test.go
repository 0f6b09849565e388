package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/behaviour"
	"kaz/internal/localazure/behaviour/network/appgateway"
	"kaz/internal/localazure/core"
	"kaz/internal/plan/gateway/health"
	"kaz/internal/plan/gateway/readiness"
	"kaz/internal/testkit"
)

// gated returns a pod whose containers are ready, with the readiness gate.
func gated(name, address string, further ...corev1.PodConditionType) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: readiness.Gate}}},
		Status: corev1.PodStatus{
			PodIPs:     []corev1.PodIP{{IP: address}},
			Conditions: []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, t := range further {
		p.Spec.ReadinessGates = append(p.Spec.ReadinessGates, corev1.PodReadinessGate{ConditionType: t})
	}
	return p
}

// endpointOf is the endpoint of a pod.
func endpointOf(p *corev1.Pod, ready bool) discovery.Endpoint {
	return discovery.Endpoint{
		Addresses: []string{p.Status.PodIPs[0].IP}, Conditions: discovery.EndpointConditions{Ready: new(ready)},
		TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID},
	}
}

// newGatedCluster returns a cluster with a Service of pods with the label app: web. Its endpoints are the given ones.
func newGatedCluster(t *testing.T, o core.Options, all ...discovery.Endpoint) *cluster {
	t.Helper()
	s := endpoints("web")
	s.Endpoints = all
	return newCluster(t, o, class(), web("web", "a.example.com", "web", 1), s, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
		},
	})
}

func (w *cluster) createPod(p *corev1.Pod) {
	w.t.Helper()
	if _, err := w.kube.CoreV1().Pods(p.Namespace).Create(w.t.Context(), p, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// gateOf is the condition of the gate of a pod, such as "False/Waiting".
func (w *cluster) gateOf(name string) string {
	w.t.Helper()
	c := w.condition(name)
	return strings.TrimSuffix(string(c.Status)+"/"+c.Reason, "/")
}

// condition is the condition of the gate of a pod.
func (w *cluster) condition(name string) corev1.PodCondition {
	w.t.Helper()
	p, err := w.kube.CoreV1().Pods("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == readiness.Gate {
			return c
		}
	}
	return corev1.PodCondition{}
}

// pooled are the addresses in the pools of the gateway, without that of a person.
func (w *cluster) pooled() string {
	var all []string
	w.t.Helper()
	for _, p := range testkit.Must[network.ApplicationGateway](w.Azure, gatewayID).Properties.Pools {
		for _, a := range p.Properties.Addresses {
			if p.Name != "other" {
				all = append(all, a.IPAddress)
			}
		}
	}
	return strings.Join(all, " ")
}

// setHealth sets the health of an address in all pools that have it, as the data plane does.
func (w *cluster) setHealth(address, state string) {
	w.t.Helper()
	g := testkit.Must[network.ApplicationGateway](w.Azure, gatewayID).Properties
	var all []appgateway.Health
	for _, p := range g.Pools {
		for _, s := range g.Settings {
			if p.Name != "other" && s.Name != "other" {
				all = append(all, appgateway.Health{Pool: p.Name, Setting: s.Name, Address: address, State: state})
			}
		}
	}
	if err := w.Do(func(world behaviour.World) error {
		world.Edit(gatewayID, func(doc behaviour.Object) { appgateway.SetHealth(doc, all) })
		return nil
	}); err != nil {
		w.t.Fatal(err)
	}
}

// asked is how often the gateway was asked for the health of its backends.
func (w *cluster) asked() int { return w.WritesBy("POST") }

// silent is an Azure that does not tell the health of backends.
type silent struct{ fullAzure }

func (s silent) Begin(ctx context.Context, r azure.Request) (*azure.Operation, error) {
	if r.Action == health.Action {
		return nil, &azure.Error{Kind: azure.Unavailable, Op: "POST", ID: r.ID, Status: 503, Code: "ServiceUnavailable", Message: "Try again."}
	}
	return s.fullAzure.Begin(ctx, r)
}

// nameless is an Azure in which no public IP address can be read.
type nameless struct{ fullAzure }

func (n nameless) Fresh() azure.Reader { return namelessReader{n.fullAzure.Fresh()} }

type namelessReader struct{ azure.Reader }

func (n namelessReader) Get(ctx context.Context, id azure.ID) (azure.Document, error) {
	if id.Is(network.PublicIPAddresses) {
		return nil, &azure.Error{Kind: azure.Unavailable, Op: "GET", ID: id, Status: 503, Code: "ServiceUnavailable", Message: "Try again."}
	}
	return n.Reader.Get(ctx, id)
}

// TestReadinessGate has the scenarios of pods that wait for an application gateway.
func TestReadinessGate(t *testing.T) {
	scenario(t, "a pod waits until the gateway finds it healthy", func(t *testing.T) {
		p := gated("one", "10.240.0.10")
		w := newGatedCluster(t, core.Options{}, endpointOf(p, false))
		w.start()
		defer w.stop()
		w.pass(time.Minute)
		want(t, "asked while no pod waits", w.asked(), 0)
		w.createPod(p)
		w.pass(10 * time.Second)
		want(t, "pool", w.pooled(), "10.240.0.10")
		want(t, "gate", w.gateOf("one"), "False/Waiting")
		w.setHealth("10.240.0.10", "Unhealthy")
		w.pass(10 * time.Second)
		want(t, "gate", w.gateOf("one"), "False/Waiting")
		w.setHealth("10.240.0.10", "Healthy")
		w.pass(5 * time.Second)
		want(t, "gate", w.gateOf("one"), "True/Healthy")
		asked := w.asked()
		w.setHealth("10.240.0.10", "Unhealthy") // its readiness probe is for that
		w.pass(time.Hour)
		want(t, "gate", w.gateOf("one"), "True/Healthy")
		want(t, "asked, and once more when the probes after the write had their time", w.asked(), asked+1)
	})
	scenario(t, "a pod to which nothing leads does not wait", func(t *testing.T) {
		p := gated("one", "10.240.0.10")
		p.Labels = map[string]string{"app": "other"}
		w := newGatedCluster(t, core.Options{})
		w.start()
		defer w.stop()
		w.createPod(p)
		w.pass(time.Second)
		want(t, "gate", w.gateOf("one"), "True/NotServed")
		want(t, "asked", w.asked(), 0)
	})
	scenario(t, "pods that wait for something else are in no pool", func(t *testing.T) {
		other, starts, again := gated("other", "10.240.0.11", "example.com/gate"), gated("starts", "10.240.0.12"), gated("again", "10.240.0.13")
		starts.Status.Conditions[0].Status = corev1.ConditionFalse
		endpoint := endpointOf(again, false)
		endpoint.TargetRef.UID = "uid-of-the-one-before"
		w := newGatedCluster(t, core.Options{}, endpointOf(other, false), endpointOf(starts, false), endpoint)
		w.createPod(other)
		w.createPod(starts)
		w.createPod(again)
		w.start()
		defer w.stop()
		w.pass(10 * time.Second)
		want(t, "pool", w.pooled(), "")
		want(t, "gate", w.gateOf("other")+w.gateOf("starts"), "")
	})
	scenario(t, "a pod stays in its pool until Kubernetes has seen that it is ready", func(t *testing.T) {
		p := gated("one", "10.240.0.10")
		w := newGatedCluster(t, core.Options{}, endpointOf(p, false))
		w.createPod(p)
		w.start()
		defer w.stop()
		w.setHealth("10.240.0.10", "Healthy")
		w.pass(10 * time.Second)
		want(t, "gate", w.gateOf("one"), "True/Healthy")
		w.Forget()
		w.pass(5 * time.Minute)
		want(t, "pool", w.pooled(), "10.240.0.10")
		want(t, "writes", w.WritesBy("PUT"), 0)
	})
	scenario(t, "a gateway without a known address serves its pods all the same", func(t *testing.T) {
		p := gated("one", "10.240.0.10")
		w := newGatedCluster(t, core.Options{}, endpointOf(p, false))
		w.config.Azure = nameless{w.config.Azure.(fullAzure)}
		w.start()
		defer w.stop()
		w.pass(10 * time.Second)
		w.createPod(p)
		w.pass(10 * time.Second)
		want(t, "gate", w.gateOf("one"), "False/Waiting")
	})
	scenario(t, "the condition says what a pod waits for", func(t *testing.T) {
		p := gated("one", "10.240.0.10")
		w := newGatedCluster(t, core.Options{}, endpointOf(p, false))
		w.createPod(p)
		w.start()
		defer w.stop()
		w.setHealth("10.240.0.10", "Unhealthy")
		w.pass(10 * time.Second)
		want(t, "it says that the pod is unhealthy", strings.Contains(w.condition("one").Message, "finds it Unhealthy in pool"), true)
	})
	scenario(t, "a pod behind an Ingress that Azure refuses does not wait", func(t *testing.T) {
		p := gated("one", "10.240.0.10")
		w := newGatedCluster(t, core.Options{}, endpointOf(p, false))
		w.createPod(p)
		w.config.Azure = &refusing{fullAzure: w.config.Azure.(fullAzure), when: func(string) bool { return true }}
		w.start()
		defer w.stop()
		w.pass(time.Minute)
		want(t, "gate", w.gateOf("one"), "True/NotServed")
	})
	scenario(t, "a gateway that does not answer keeps a pod waiting", func(t *testing.T) {
		p := gated("one", "10.240.0.10")
		w := newGatedCluster(t, core.Options{}, endpointOf(p, false))
		w.createPod(p)
		w.config.Azure = silent{w.config.Azure.(fullAzure)}
		w.start()
		defer w.stop()
		w.pass(time.Minute)
		want(t, "gate", w.gateOf("one"), "False/Waiting")
		want(t, "pool", w.pooled(), "10.240.0.10")
	})
}
