package reconcile_test

import (
	"context"
	"fmt"
	"testing"

	"kaz/internal/azure"
	"kaz/internal/reconcile"
)

// echo has every second resource.
type echo struct{ azure.Reader }

func (echo) Get(_ context.Context, id azure.ID) (azure.Document, error) {
	if last := id[len(id)-1]; last%2 == 0 {
		return nil, &azure.Error{Kind: azure.NotFound, ID: id}
	}
	return azure.Document(`{"id":"` + string(id) + `"}`), nil
}

// BenchmarkTake reads 10,000 resources one by one. Half of them do not exist.
func BenchmarkTake(b *testing.B) {
	needs := reconcile.Needs{Resources: make([]azure.ID, 10_000)}
	for i := range needs.Resources {
		needs.Resources[i] = group.Resource("N/ips", fmt.Sprint(i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if have, err := reconcile.Take(b.Context(), echo{}, needs); err != nil || have.Len() != len(needs.Resources)/2 {
			b.Fatal(have.Len(), err)
		}
	}
}
