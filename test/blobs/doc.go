// Package blobs runs the tests of the official SDK azblob, which are meant for Azure, with the blobs of a local Azure.
package blobs

import (
	_ "github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/storage/armstorage" // for the tests of the SDK
	_ "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"                     // with the tests
	_ "github.com/stretchr/testify/suite"                                        // for the tests of the SDK
)
