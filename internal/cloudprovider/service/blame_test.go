package service

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kaz/internal/azure"
	"kaz/internal/plan"
	"kaz/internal/plan/loadbalancer"
	"kaz/internal/reconcile"
)

// Azure refuses a shared document because of one part of it, and names the part.
func TestBlame(t *testing.T) {
	const (
		group = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/"
		lb    = group + "loadBalancers/kubernetes"
		body  = `{"id":"` + lb + `","properties":{"frontendIPConfigurations":[
			{"name":"a0000000100000000000000000000000","properties":{"publicIPAddress":{"id":"` + group + `publicIPAddresses/mine"}}},
			{"name":"a0000000200000000000000000000000","properties":{"publicIPAddress":{"id":"` + group + `publicIPAddresses/mine-too"}}},
			{"name":"a0000000300000000000000000000000-apps","properties":{"subnet":{"id":"` + group +
			`virtualNetworks/v/subnets/apps"}}}]}}`
	)
	var batch []request
	var all []string
	for i := range 3 {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprintf("%08d-0000-0000-0000-000000000000", i+1)),
		}}
		batch = append(batch, request{service: loadbalancer.Service{Service: s}})
		all = append(all, "default/"+s.Name)
	}
	shared := plan.Step{Op: plan.Update, ID: lb, Body: azure.Document(body), For: all}
	refusal := func(message, target string) error {
		return fmt.Errorf("put: %w", &azure.Error{Kind: azure.Invalid, Message: message, Target: target})
	}
	for name, c := range map[string]struct {
		results []reconcile.Result
		want    []int // nil where no request is named
	}{
		"a step for one alone": {[]reconcile.Result{{Step: plan.Step{Op: plan.Create, ID: group + "publicIPAddresses/x",
			For: all[1:2]}, Err: refusal("no", "")}}, []int{1}},
		"a frontend in the message": {[]reconcile.Result{{Step: shared,
			Err: refusal("Frontend "+lb+"/frontendIPConfigurations/A0000000200000000000000000000000 is wrong", "")}}, []int{1}},
		"a rule in the target": {[]reconcile.Result{{Step: shared,
			Err: refusal("", lb+"/loadBalancingRules/a0000000100000000000000000000000-TCP-80")}}, []int{0}},
		"a public IP": {[]reconcile.Result{{Step: shared, Err: refusal("Resource "+group+"publicIPAddresses/mine.", "")}},
			[]int{0}},
		"one with a longer name": {[]reconcile.Result{{Step: shared,
			Err: refusal("Resource '"+group+"publicIPAddresses/mine-too' is in use", "")}}, []int{1}},
		"a subnet": {[]reconcile.Result{{Step: shared,
			Err: refusal("Subnet "+group+"virtualNetworks/v/subnets/apps is full", "")}}, []int{2}},
		"no part":            {[]reconcile.Result{{Step: shared, Err: refusal("It is too large", "")}}, nil},
		"all":                {[]reconcile.Result{{Step: shared, Err: refusal(body, "")}}, nil},
		"what was not tried": {[]reconcile.Result{{Step: shared, Err: reconcile.ErrNotAttempted}}, nil},
		"a request, and an unknown one": {[]reconcile.Result{
			{Step: plan.Step{Op: plan.Create, ID: group + "publicIPAddresses/x", For: all[:1]}, Err: refusal("no", "")},
			{Step: shared, Err: refusal("It is too large", "")},
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			failed := errors.New("failed")
			failing := commit{batch: batch, failure: failed, out: reconcile.Outcome{Reports: []reconcile.Report{{Results: c.results}}}}
			err := failing.blame()
			var got []int
			if r, ok := errors.AsType[*reconcile.Refusal](err); ok {
				got = slices.Sorted(maps.Keys(r.Culprits))
			} else if !errors.Is(err, failed) {
				t.Errorf("error %v", err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("culprits (-want +got):\n%s", d)
			}
		})
	}
}
