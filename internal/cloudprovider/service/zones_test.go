package service_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/informers"

	"kaz/internal/azure/network"
	"kaz/internal/cloudprovider/service"
	"kaz/internal/emulator"
	"kaz/internal/testkit"
)

// The zones of the region are asked for when there is a Service to serve, and not before.
func TestZonesAreAskedForWhenNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, emulator.Options{}, 1)
		c := config()
		c.LoadBalancer.Zones = nil
		var asked atomic.Int32
		zones := func(context.Context) []string {
			asked.Add(1)
			return []string{"1", "2"}
		}
		factory := informers.NewSharedInformerFactory(w.client, 0)
		controller, err := service.New(c, service.Deps{Azure: w.Door, Client: w.client, Informers: factory, Events: w.events, Zones: zones})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			controller.Run(ctx)
		}()
		factory.Start(ctx.Done())
		defer func() {
			cancel()
			<-ended
			factory.Shutdown()
		}()
		w.settle()
		if asked.Load() > 0 {
			t.Error("asked for without a Service")
		}
		w.create(w.newService("web", 80))
		w.served("web")
		ips := testkit.List[network.PublicIPAddress](w.Azure, testkit.Group, network.PublicIPAddresses)
		if len(ips) != 1 || !slices.Equal(ips[0].Zones, []string{"1", "2"}) {
			t.Errorf("public IPs %+v", ips)
		}
	})
}
