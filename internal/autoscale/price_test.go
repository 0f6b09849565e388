package autoscale_test

import (
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/localazure/core"
	retailplane "kaz/internal/localazure/plane/retail"
	"kaz/internal/retail"
	"kaz/internal/testkit"
)

// shop is the local Azure's service of retail prices, without a socket. While it is down no request is answered.
type shop struct {
	down  bool
	asked int
}

func (s *shop) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked++
	if s.down {
		return nil, errors.New("the service is down")
	}
	w := httptest.NewRecorder()
	(&retailplane.Service{}).ServeHTTP(w, r)
	return w.Result(), nil
}

// newPriceFleet returns a world with prices, in which the machines of the scale set "spot" are Spot machines.
func newPriceFleet(t *testing.T, s *shop) *fleet {
	t.Helper()
	w := &fleet{Azure: testkit.NewAzure(t, core.Options{}, 0), t: t}
	w.AddScaleSet(pool, testkit.Uniform, 1)
	w.AddScaleSet("spot", testkit.Uniform, 0)
	w.replace("spot", map[string]any{"properties": map[string]any{"virtualMachineProfile": map[string]any{
		"priority": "Spot", "evictionPolicy": "Delete",
	}}})
	if s != nil {
		w.config.Prices = retail.Client{Source: retail.PublicURL, HTTP: &http.Client{Transport: s}}
	}
	w.start("0:10:pool", "0:10:spot")
	return w
}

// template returns the node that cluster-autoscaler would ask the price of.
func (w *fleet) template(group string) *externalgrpc.ExternalGrpcNode {
	w.t.Helper()
	r, err := w.NodeGroupTemplateNodeInfo(w.t.Context(), &externalgrpc.NodeGroupTemplateNodeInfoRequest{Id: group})
	if err != nil {
		w.t.Fatal(err)
	}
	var node corev1.Node
	if err := node.Unmarshal(r.NodeBytes); err != nil {
		w.t.Fatal(err)
	}
	return &externalgrpc.ExternalGrpcNode{Name: node.Name, Labels: node.Labels}
}

func (w *fleet) nodePrice(node *externalgrpc.ExternalGrpcNode, hours float64) (float64, error) {
	now := time.Now()
	r, err := w.PricingNodePrice(w.t.Context(), &externalgrpc.PricingNodePriceRequest{
		Node: node, StartTimestamp: timestamppb.New(now), EndTimestamp: timestamppb.New(now.Add(time.Duration(hours * float64(time.Hour)))),
	})
	return r.GetPrice(), err
}

func (w *fleet) podPrice(cpu, memory string) (float64, error) {
	w.t.Helper()
	pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
	}}}}}
	text, err := pod.Marshal()
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := w.PricingPodPrice(w.t.Context(), &externalgrpc.PricingPodPriceRequest{
		Pod: text, StartTime: &externalgrpc.Time{Seconds: 1000}, EndTime: &externalgrpc.Time{Seconds: 1000 + 3600}, // as until 1.34
	})
	return r.GetPrice(), err
}

func wantAbout(t *testing.T, what string, have, want float64) {
	t.Helper()
	if math.Abs(have-want) > want/1e6 {
		t.Errorf("%s: %v, want %v", what, have, want)
	}
}

// must returns a price that has to be known.
func must(t *testing.T) func(float64, error) float64 {
	return func(price float64, err error) float64 {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		return price
	}
}

// TestPrices has the scenario S42.
func TestPrices(t *testing.T) {
	scenario(t, "S42 prices of nodes and pods", func(t *testing.T) {
		s := &shop{}
		w := newPriceFleet(t, s)
		defer w.stop()
		want(t, "requests before a price is needed", s.asked, 0)
		_, err := w.nodePrice(w.template(pool), 1)
		wantCode(t, "before it was read", err, codes.Unimplemented)
		pass(time.Second)
		have := must(t)
		onDemand, spot := have(w.nodePrice(w.template(pool), 1)), have(w.nodePrice(w.template("spot"), 1))
		// The local Azure's prices: 2 vCPUs of $0.04, 8 GiB of $0.005, and a fifth of that for a Spot machine.
		wantAbout(t, "on demand", onDemand, .12)
		wantAbout(t, "Spot", spot, .024)
		wantAbout(t, "half an hour", have(w.nodePrice(w.template(pool), .5)), onDemand/2)
		node := &externalgrpc.ExternalGrpcNode{Name: "n", ProviderID: w.well(pool)[0]}
		wantAbout(t, "a node without labels", have(w.nodePrice(node, 1)), onDemand)
		small := have(w.podPrice("500m", "1Gi"))
		wantAbout(t, "a pod with three times the requests", have(w.podPrice("1500m", "3Gi")), 3*small)
		wantAbout(t, "a pod as large as a machine", have(w.podPrice("2", "8Gi")), onDemand)
		want(t, "requests", s.asked, 1)
	})
	scenario(t, "S42 the source of prices is down", func(t *testing.T) {
		s := &shop{}
		w := newPriceFleet(t, s)
		defer w.stop()
		_, _ = w.nodePrice(w.template(pool), 1)
		pass(time.Second)
		s.down = true
		const old = 13 * time.Hour
		pass(old)
		have := must(t)
		wantAbout(t, "an old price", have(w.nodePrice(w.template(pool), 1)), .12)
		pass(time.Second)
		wantAbout(t, "after the failure", have(w.nodePrice(w.template(pool), 1)), .12)
		want(t, "requests", s.asked, 2)
	})
	scenario(t, "S42 prices were never known", func(t *testing.T) {
		s := &shop{down: true}
		w := newPriceFleet(t, s)
		defer w.stop()
		for range 2 {
			_, err := w.nodePrice(w.template(pool), 1)
			wantCode(t, "of a node", err, codes.Unimplemented)
			_, err = w.podPrice("1", "1Gi")
			wantCode(t, "of a pod", err, codes.Unimplemented)
			pass(time.Minute)
		}
		want(t, "requests in two minutes", s.asked, 1)
		pass(5 * time.Minute)
		s.down = false
		_, _ = w.nodePrice(w.template(pool), 1)
		pass(time.Second)
		wantAbout(t, "when the source is there again", must(t)(w.nodePrice(w.template(pool), 1)), .12)
	})
	scenario(t, "no source, and bad requests", func(t *testing.T) {
		w := newPriceFleet(t, nil)
		defer w.stop()
		_, err := w.nodePrice(w.template(pool), 1)
		wantCode(t, "without a source", err, codes.Unimplemented)
		_, err = w.nodePrice(w.template(pool), -1)
		wantCode(t, "the end before the beginning", err, codes.InvalidArgument)
		_, err = w.nodePrice(&externalgrpc.ExternalGrpcNode{Name: "n"}, 1)
		wantCode(t, "an unknown node", err, codes.InvalidArgument)
		for what, text := range map[string][]byte{"no pod": nil, "no protobuf": {1, 2, 3}} {
			_, err = w.PricingPodPrice(t.Context(), &externalgrpc.PricingPodPriceRequest{
				PodBytes: text, StartTime: &externalgrpc.Time{Seconds: 1}, EndTime: &externalgrpc.Time{Seconds: 2},
			})
			wantCode(t, what, err, codes.InvalidArgument)
		}
		_, err = w.PricingPodPrice(t.Context(), &externalgrpc.PricingPodPriceRequest{})
		wantCode(t, "no time", err, codes.InvalidArgument)
	})
}
