// Package tables runs the tests of the official SDK aztables, which are meant for Azure, with the tables of a local Azure.
package tables

import (
	_ "github.com/Azure/azure-sdk-for-go/sdk/data/aztables" // with the tests
	_ "github.com/stretchr/testify/suite"                   // for the tests of the SDK
)
