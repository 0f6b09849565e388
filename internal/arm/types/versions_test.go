package types_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"kaz/internal/arm/types"
	"kaz/internal/plan/rights"
)

// TestVersionsExist compares the api-versions of the types that kaz writes with those of the official models. A version after that of the
// model is one that Azure does not have: each provider, and some types of Microsoft.Network, has versions of its own.
func TestVersionsExist(t *testing.T) {
	text, err := os.ReadFile("../../localazure/core/model/table.txt")
	if err != nil {
		t.Fatal(err)
	}
	newest := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 4 && f[0] == "PUT" {
			newest[strings.ToLower(f[1])] = f[2]
		}
	}
	features := slices.Concat(rights.Features(), rights.ClusterFeatures(), rights.DiskFeatures(), rights.FileFeatures(),
		rights.GatewayFeatures(), rights.NodeGroupFeatures(), rights.DNSFeatures())
	index, compared := types.NewIndex(), 0
	for _, need := range rights.Needed(features...) {
		fullType, writes := strings.CutSuffix(need.Action, "/write")
		known := newest[strings.ToLower(fullType)]
		if !writes || known == "" {
			continue
		}
		compared++
		if version := index.Of(fullType).Version; version > known {
			t.Errorf("%s is written in api-version %s; the official model is of %s", fullType, version, known)
		}
	}
	if compared < 20 {
		t.Errorf("%d types were compared", compared)
	}
}
