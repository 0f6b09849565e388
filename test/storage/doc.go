// Package storage runs the tests of the official SDKs azblob, azqueue and aztables, which are meant for Azure, with the storage accounts of
// a local Azure.
package storage

import (
	_ "github.com/Azure/azure-sdk-for-go/sdk/data/aztables"                      // with the tests
	_ "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage" // for the tests of the SDK
	_ "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"                     // with the tests
	_ "github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"                    // with the tests
	_ "github.com/stretchr/testify/suite"                                        // for the tests of the SDK
)
