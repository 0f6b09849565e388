package tables_test

import (
	"flag"
	"testing"
	"time"

	"kaz/internal/testkit/sdktest"
)

var update = flag.Bool("update", false, "write the list of tests that fail, with the reasons that it has")

// TestLive runs the tests of the SDK that are for storage accounts. The others are for Azure Cosmos DB and for another emulator.
func TestLive(t *testing.T) {
	if testing.Short() {
		t.Skip("the tests of the SDK take minutes")
	}
	account := &sdktest.Account{Name: "kaztables", SKU: "Standard_RAGRS"}
	environment := sdktest.Start(t, account)
	environment = append(environment, "TABLES_STORAGE_ACCOUNT_NAME="+account.Name, "TABLES_PRIMARY_STORAGE_ACCOUNT_KEY="+account.Key,
		"TABLES_COSMOS_ACCOUNT_NAME=none", "TABLES_PRIMARY_COSMOS_ACCOUNT_KEY=bm9uZQ==")
	sdktest.Module{Path: "github.com/Azure/azure-sdk-for-go/sdk/data/aztables", Packages: []string{""}, Plain: true,
		Skip: "Cosmos|/cosmos|Azurite", Within: 10 * time.Minute, Reasons: "testdata/differs.txt", Update: *update}.Run(t, environment)
}
