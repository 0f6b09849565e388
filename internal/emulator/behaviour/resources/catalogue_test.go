package resources_test

import (
	"strings"
	"testing"

	"kaz/internal/emulator/behaviour"
	"kaz/internal/emulator/behaviour/behaviourtest"
	"kaz/internal/emulator/providers"
)

// TestTheCatalogueListsEveryType: clients look up types and their api-versions in
// the catalogue before they use them.
func TestTheCatalogueListsEveryType(t *testing.T) {
	all := providers.All()
	a := behaviourtest.Start(t, all...)
	listed := map[string]bool{}
	for _, p := range behaviour.Objects(a.Run(exchange{Do: "GET ~~/providers"}), "value") {
		for _, r := range behaviour.Objects(p, "resourceTypes") {
			listed[strings.ToLower(behaviour.Text(p, "namespace")+"/"+behaviour.Text(r, "resourceType"))] = true
		}
	}
	for _, p := range all {
		for _, typ := range p.Types {
			if strings.Count(typ.Name, "/") == 1 && !listed[strings.ToLower(typ.Name)] {
				t.Errorf("%s is not in the catalogue of providers: add it to types.tsv", typ.Name)
			}
		}
	}
}
