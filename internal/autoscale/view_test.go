package autoscale_test

import (
	"errors"
	"flag"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kaz/internal/autoscale"
	"kaz/internal/autoscale/externalgrpc"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// wantLines checks that a view has lines, in any order.
func wantLines(t *testing.T, v autoscale.View, lines ...string) {
	t.Helper()
	text := v.String()
	for _, line := range lines {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in:\n%s", line, text)
		}
	}
}

func (w *fleet) view(name string) autoscale.View {
	w.t.Helper()
	v, err := w.Provider.View(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// TestView checks what a provider says of scale sets.
func TestView(t *testing.T) {
	scenario(t, "refused machines and a loop", func(t *testing.T) {
		w := &fleet{Azure: testkit.NewAzure(t, core.Options{Latency: 1, Quotas: map[string]int{"standardDSv5Family": 6}}, 0), t: t}
		w.AddScaleSet(pool, testkit.Uniform, 2)
		w.start("0:10:pool")
		defer w.stop()
		wantLines(t, w.view(pool), "last loop    none: cluster-autoscaler has not asked this provider", "machines to become nodes: 2",
			"room         for 1 more: QuotaExceeded: the quota standardDSv5Family is 6 vCPUs, of which 4 are used")
		if _, err := w.Refresh(t.Context(), &externalgrpc.RefreshRequest{}); err != nil {
			t.Fatal(err)
		}
		w.join(pool)
		if v := w.view(pool); len(v.Waits)+len(v.Problems) > 0 {
			t.Errorf("with nodes: %v, %v", v.Waits, v.Problems)
		}
		if err := w.increase(pool, 3); err != nil {
			t.Fatal(err)
		}
		pass(4 * time.Second)
		v := w.view("POOL")
		wantLines(t, v, "node group   yes, from 0 to 10 machines", "next loop    target 5, capacity in Azure 3",
			"last loop    4s ago", "(placeholder)  creating        QuotaExceeded", "0              running   0 ",
			"machines that do not come: 2: QuotaExceeded: the quota", "machines to be made: 1", "room         for 0 more")
		if len(v.Instances) != 4 || v.Asked != 1 || v.Instances[0].Node != "0" {
			t.Errorf("%+v", v)
		}
		if err := w.delete(pool, w.failed(pool)...); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Minute)
		w.join(pool)
		wantLines(t, w.view(pool), "next loop    target 3, capacity in Azure 3", "nothing is pending")
	})
	scenario(t, "machines that leave, and deallocated ones", func(t *testing.T) {
		w := &fleet{Azure: testkit.NewAzure(t, core.Options{Latency: 1}, 0), t: t}
		w.AddScaleSet(pool, testkit.Uniform, 3)
		w.tag(pool, map[string]string{optionTag + "scaledownmode": "deallocate"})
		w.start("0:10:pool")
		defer w.stop()
		w.join(pool)
		if err := w.delete(pool, w.well(pool)[0]); err != nil {
			t.Fatal(err)
		}
		wantLines(t, w.view(pool), "machines to be deleted or deallocated: 1", "target 2, capacity in Azure 3")
		pass(5 * time.Minute)
		wantLines(t, w.view(pool), "deallocated", "target 2, capacity in Azure 3", "nothing is pending")
	})
	scenario(t, "no node group", func(t *testing.T) {
		w := newFleet(t, core.Options{}, 1, "label:scaled=yes")
		defer w.stop()
		v := w.view(pool)
		wantLines(t, v, "node group   no: no --nodes names it, and it lacks the tag scaled=yes")
		if v.Ignored == "" || len(v.Instances) > 0 {
			t.Errorf("%+v", v)
		}
		_, err := w.Provider.View(t.Context(), "other")
		if !errors.Is(err, autoscale.ErrNoScaleSet) || !strings.HasSuffix(err.Error(), "there are: "+testkit.ScaleSet+", "+pool) {
			t.Error(err)
		}
	})
}

// TestLook checks what Azure and Kubernetes alone tell.
func TestLook(t *testing.T) {
	for name, kind := range map[string]string{"uniform": testkit.Uniform, "flexible": testkit.Flexible} {
		scenario(t, name, func(t *testing.T) {
			w := &fleet{Azure: testkit.NewAzure(t, core.Options{}, 0), t: t}
			w.AddScaleSet(pool, kind, 2)
			w.start("0:10:pool")
			id := w.well(pool)[0]
			w.stop()
			w.Forget()
			node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}, Spec: corev1.NodeSpec{ProviderID: id}}
			node.Status.Allocatable = corev1.ResourceList{"cpu": resource.MustParse("1234m")}
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			selection, err := selectionOf("0:10:pool")
			if err != nil {
				t.Fatal(err)
			}
			v, err := autoscale.Look(t.Context(), autoscale.Config{
				Azure: fresh{w.Client.Fresh(), w.Client}, ResourceGroup: testkit.Group, Location: testkit.Location,
				Selection: selection, Log: slog.New(slog.DiscardHandler),
			}, []corev1.Node{node}, pool)
			if err != nil {
				t.Fatal(err)
			}
			wantLines(t, v, "seen by      Azure and Kubernetes alone", "running  node-a", "like node node-a: cpu 1234m", "machines to become nodes: 1")
			if kind == testkit.Uniform {
				wantPicture(t, "testdata/look.svg", v.Picture().Inline(nil))
			}
			if strings.Contains(v.String(), "last loop") {
				t.Errorf("a loop:\n%s", v)
			}
			wantWrites(t, w)
		})
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

// wantPicture compares a picture with a file.
func wantPicture(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: run with -update if this is as it should be (-want +got):\n%s", file, diff)
	}
}
