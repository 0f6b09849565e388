package loadbalancer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	helpers "k8s.io/cloud-provider/service/helpers"

	"kaz/internal/azure"
	kube "kaz/internal/cloudprovider/service/decision"
	"kaz/internal/cloudprovider/service/explain"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/shadow"
)

// shown is Azure as a snapshot shows it.
type shown struct{ plan.Snapshot }

// Get implements [azure.Reader].
func (s shown) Get(_ context.Context, id azure.ID) (azure.Document, error) {
	if d, ok := s.Snapshot.Get(id); ok {
		return d, nil
	}
	return nil, &azure.Error{Kind: azure.NotFound, ID: id}
}

// List implements [azure.Reader].
func (s shown) List(_ context.Context, q azure.Query) ([]azure.Document, error) {
	return s.Snapshot.List(q.Scope, q.Type), nil
}

// TestShadowOfTakeOver runs kaz shadow over the states of TestTakeOver: it says that a switch writes nothing to Azure. Where a defect of
// the predecessor left something, it names what kaz repairs.
func TestShadowOfTakeOver(t *testing.T) {
	for _, sc := range scenes {
		if sc.none != "" {
			continue
		}
		t.Run(sc.name(), func(t *testing.T) {
			free := rand.New(rand.NewPCG(0, uint64(sc.row)))
			p := sc.serve(t, free)
			if sc.left != nil {
				sc.left(p.azure)
			}
			answer(p, free)
			in, refused := sc.input(p)
			in.Have = p.azure.snapshot()
			in.Services = slices.DeleteFunc(in.Services, func(s loadbalancer.Service) bool { // the predecessor has deleted it
				return s.Gone && !slices.Contains(sc.undone, s.Name)
			})
			e := explained(t, in)
			verdicts, err := shadow.Services(func(context.Context) (explain.Explanation, error) { return e, nil }).Decide(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			writes := 0
			for _, v := range verdicts {
				for _, w := range v.Writes {
					if !strings.HasPrefix(w, "status.conditions: + kaz/") { // where kaz finds a private link of another group again
						writes++
					}
				}
				if (v.Refused != "") != refused[v.Object] && sc.repair == nil {
					t.Errorf("%s is refused: %q", v.Object, v.Refused)
				}
			}
			repairs := sc.repair != nil && sc.groups == nil // groups are known of conditions that kaz alone writes
			if (writes > 0) != repairs {
				t.Errorf("%d writes, and repaired is %q: %v", writes, sc.repair, verdicts)
			}
		})
	}
}

// explained is what kaz shadow learns of the Services of an input.
func explained(t *testing.T, in loadbalancer.Input) explain.Explanation {
	t.Helper()
	var all []*v1.Service
	for _, s := range in.Services {
		one := s.DeepCopy()
		one.Finalizers = []string{helpers.LoadBalancerCleanupFinalizer}
		if s.Gone {
			one.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		}
		all = append(all, one)
	}
	list := func() []*v1.Service { return slices.Clone(all) }
	cluster := kube.Cluster{
		Config: in.Config, Classes: kube.Classes{""}, Nodes: func() []*v1.Node { return in.Nodes }, Services: list,
		All: func(context.Context) ([]*v1.Service, error) { return list(), nil },
		Namespaces: func() (all []*v1.Namespace) {
			for name, labels := range in.Namespaces {
				all = append(all, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
			}
			return all
		},
		Endpoints: func() []*discovery.EndpointSlice { return slicesOf(in.Endpoints) },
		Foreign:   func() bool { return false }, Deleted: &kube.DeletedNodes{}, NameConfirmed: &atomic.Bool{},
	}
	e, err := explain.Services(t.Context(), cluster, shown{in.Have}, list(), true)
	if err != nil {
		t.Fatal(fmt.Errorf("explain: %w", err))
	}
	return e
}

// slicesOf are the endpoints of Services on nodes, by NAMESPACE/NAME.
func slicesOf(nodes map[string][]string) (all []*discovery.EndpointSlice) {
	for key, names := range nodes {
		namespace, service, _ := strings.Cut(key, "/")
		one := &discovery.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Labels: map[string]string{discovery.LabelServiceName: service},
		}}
		for _, name := range names {
			one.Endpoints = append(one.Endpoints, discovery.Endpoint{NodeName: &name})
		}
		all = append(all, one)
	}
	return all
}
