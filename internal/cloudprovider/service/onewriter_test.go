package service

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"kaz/internal/azure"
	"kaz/internal/azure/compute"
	"kaz/internal/azure/network"
	"kaz/internal/localazure/core"
	"kaz/internal/testkit"
)

// TestPoolsHaveOneWriter checks that the client of commits writes no members of pools, and that only one
// other client does at a time.
func TestPoolsHaveOneWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := testkit.NewAzure(t, core.Options{}, 1)
		pools := newPoolWriter(&Controller{azure: w.Client})
		commits := guardedClient{w.Client, &pools.lock, nil}
		for _, id := range []azure.ID{testkit.Nodes, testkit.Nodes.Child("virtualMachines", "0"),
			testkit.Group.Resource(network.Interfaces, "nic")} {
			_, err := commits.Begin(t.Context(), azure.Request{Verb: azure.Put, ID: id, Body: azure.Document(`{}`)})
			if azure.KindOf(err) != azure.Internal {
				t.Errorf("a commit wrote %s: %v", id, err)
			}
		}
		if wrote := w.Writes(); len(wrote) > 0 {
			t.Errorf("written was %v", wrote)
		}

		_, release, err := pools.take(t.Context(), newPoolWrite())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := pools.take(ctx, newPoolWrite()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("there is a second writer: %v", err)
		}
		release()
		client, release, err := pools.take(t.Context(), newPoolWrite())
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		doc, err := client.Get(t.Context(), testkit.Nodes)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := azure.Do(t.Context(), client, azure.Request{Verb: azure.Put, ID: testkit.Nodes, Body: doc}); err != nil {
			t.Errorf("%s is not written: %v", compute.ScaleSets, err)
		}
	})
}
