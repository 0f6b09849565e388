package routes_test

import (
	"testing"

	"kaz/internal/azure"
	"kaz/internal/plan/routes"
)

func TestLimitThatAzureSays(t *testing.T) {
	docs := []azure.Document{
		azure.Document(`{"id":"/u/RouteTables","name":{"value":"RouteTables"},"limit":200}`),
		azure.Document(`{"id":"/u/RoutesPerRouteTable","name":{"value":"routesPerRouteTable","localizedValue":"Routes per Route Table"},"limit":1000}`),
	}
	if got := routes.LimitIn(docs); got != 1000 {
		t.Error(got)
	}
	if got := routes.LimitIn(append(docs[:1], azure.Document(`[]`), nil)); got != 0 {
		t.Errorf("not said, and yet %d", got)
	}
	q := routes.Limits(routes.Config{Subscription: "s", Location: "West Europe"})
	if q.Scope != "/subscriptions/s/providers/Microsoft.Network/locations/westeurope" {
		t.Error(q)
	}
}
